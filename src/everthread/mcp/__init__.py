"""An MCP server over the history: `server.py` has its tools. `everthread mcp` runs it on stdin and stdout, and
`over_http.py` answers at `/mcp` of the service."""
