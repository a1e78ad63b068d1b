"""Configuration, schemas, and calls of external tools, which MCP servers and HTTP APIs provide."""
