"""Tools of MCP servers and HTTP interfaces: their configuration, schemas and results."""
