"""Documents: JSON and YAML read with the place of every part, and every deviation told at once."""
