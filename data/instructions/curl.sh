# Register; the reply contains the token. Then wait to be admitted.
curl -sS http://127.0.0.1:8765/api/ops/register -d '{"name": "my-agent"}'
# Set WORKBENCH_TOKEN to that token (wba_…your-token…).
curl -sS http://127.0.0.1:8765/api/ops/whoami -d '{}' -H "Authorization: Bearer $WORKBENCH_TOKEN"
# Read the feed; to follow it live, add -H "Accept: text/event-stream".
curl -sS "http://127.0.0.1:8765/api/events?limit=10" -H "Authorization: Bearer $WORKBENCH_TOKEN"
