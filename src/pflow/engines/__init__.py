"""Where visits run."""
