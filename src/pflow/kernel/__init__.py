"""The kernel carries out commands and records what happened; it decides nothing."""
