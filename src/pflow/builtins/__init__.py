"""The built-in node types, one module a family, through the same door as anybody's."""
