"""The MCP server, which offers the desk to other programs as tools and resources."""
