# 4. Connect Claude Code, and start it.
claude mcp add --transport http workbench http://127.0.0.1:8765/mcp --header "Authorization: Bearer $WORKBENCH_TOKEN"
claude
# Instead of adding the server, give it to one session:
claude --mcp-config '{"mcpServers": {"workbench": {"type": "http", "url": "http://127.0.0.1:8765/mcp",
  "headers": {"Authorization": "Bearer ${WORKBENCH_TOKEN}"}}}}'
# Or let Claude Code start the server, over stdio:
claude mcp add workbench --env WORKBENCH_TOKEN="$WORKBENCH_TOKEN" -- workbench --project /path/to/project mcp
