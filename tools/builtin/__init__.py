"""The built-in tools; `tools.catalog` finds them."""
