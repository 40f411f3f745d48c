# 1. Register the agent. The reply has its token, which is shown only this once.
curl -sS http://127.0.0.1:8765/api/ops/register -d '{"name": "my-agent", "persona_id": "implementer"}'
# 2. Admit it.
workbench --project /path/to/project approve my-agent
# 3. Set its token.
export WORKBENCH_TOKEN=wba_…your-token…
# 4. Call operations, and read the feed; to follow it live, add -H "Accept: text/event-stream".
curl -sS http://127.0.0.1:8765/api/ops/whoami -d '{}' -H "Authorization: Bearer $WORKBENCH_TOKEN"
curl -sS "http://127.0.0.1:8765/api/events?limit=10" -H "Authorization: Bearer $WORKBENCH_TOKEN"
