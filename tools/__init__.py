"""Tools that are called by models and rule-based planners, and the executor that runs them.

`tool` defines the base class, `executor` runs tool calls within their limits, and `catalog`
discovers the tools in `builtin`, describes them for models, and loads tool sets from files.
"""
