"""Tools that models and offline planners call, and the one executor that runs them.

`tool` defines a tool, `executor` runs calls of tools within their limits, and `catalog` finds the
tools below `builtin`, describes them for vendors, and renames them by a file.
"""
