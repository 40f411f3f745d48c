# 4. Connect Gemini CLI, and start it.
gemini mcp add --scope user --transport http --header "Authorization: Bearer $WORKBENCH_TOKEN" workbench http://127.0.0.1:8765/mcp
gemini
# Or let Gemini CLI start the server, over stdio:
gemini mcp add --scope user -e WORKBENCH_TOKEN="$WORKBENCH_TOKEN" -e WORKBENCH_PROJECT=/path/to/project workbench workbench mcp
