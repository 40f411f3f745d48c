# 1. Put this into the configuration of your client (.mcp.json, mcp_config.json, …), or into a file for --mcp-config.
cat <<'END'
{
  "mcpServers": {
    "workbench": {
      "command": "workbench",
      "args": ["--project", "/json/path/to/project", "mcp"]
    }
  }
}
END
# 2. The agent registers with the tool `register`. Admit it by the name that it chose, with a worktree if it needs one:
#      workbench --project /path/to/project approve NAME
# 3. The server keeps its token while the client runs. To use it again later, add it to the configuration:
#      "env": {"WORKBENCH_TOKEN": "wba_…your-token…"}
