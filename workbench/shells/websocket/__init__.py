"""The WebSocket shell: `/ws/{client_id}`, frames `[agent, action, data]` (spec 1); `/ws/chat`, chats (spec 4)."""
