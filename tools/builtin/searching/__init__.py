"""Tools that find passages."""
