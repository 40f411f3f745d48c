# 4. Connect Codex, and start it. It reads the token from WORKBENCH_TOKEN, so set that for each session.
codex mcp add workbench --url http://127.0.0.1:8765/mcp --bearer-token-env-var WORKBENCH_TOKEN
codex
# Or let Codex start the server, over stdio:
codex mcp add workbench --env WORKBENCH_TOKEN="$WORKBENCH_TOKEN" -- workbench --project /path/to/project mcp
