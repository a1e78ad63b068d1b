"""The MCP server: the desk as tools and resources of other programs."""
