"""An MCP server over the history: `server.py` has its tools, `everthread mcp` runs it."""
