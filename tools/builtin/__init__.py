"""The built-in tools, one a module; `tools.catalog` finds them."""
