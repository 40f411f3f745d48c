"""The WebSocket shell: `/ws/{client_id}`, frames `[agent, action, data]` (spec 1)."""
