# 4. Put this into the configuration of your client (.mcp.json, mcp_config.json, …), or into a file for --mcp-config.
cat <<END
{
  "mcpServers": {
    "workbench": {
      "type": "http",
      "url": "http://127.0.0.1:8765/mcp",
      "headers": {"Authorization": "Bearer $WORKBENCH_TOKEN"}
    }
  }
}
END
