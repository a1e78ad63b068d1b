"""External tools from MCP servers and HTTP APIs: configuration, schemas and calls."""
