"""Tools that models and offline planners call, and the one executor that runs them.

`tool` defines a tool, `executor` runs calls of tools within their limits, `catalog` finds the tools
below `builtin`, `schemas` describes them for vendors, and `tool_sets` renames them by a file.
"""
