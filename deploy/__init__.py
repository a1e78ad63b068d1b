"""The assembly of all parts, and the generated files."""
