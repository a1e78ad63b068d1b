"""Tools of MCP servers, with the official `mcp` package, which the extra `mcp` installs."""
