# First set WORKBENCH_TOKEN to the agent's token (wba_…your-token…).
claude mcp add --transport http workbench http://127.0.0.1:8765/mcp --header "Authorization: Bearer $WORKBENCH_TOKEN"
