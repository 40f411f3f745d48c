"""An agent on a WebSocket. The first run registers and waits for you; keep the token that it prints."""

import json
import os

from websockets.sync.client import connect  # pip install websockets

NAME = "my-agent"

with connect(f"ws://127.0.0.1:8765/ws/{NAME}", proxy=None) as socket:

    def hear():
        return json.loads(socket.recv())

    def say(action, **data):
        socket.send(json.dumps([NAME, action, data]))
        return hear()

    print(hear()["message"])
    token = os.environ.get("WORKBENCH_TOKEN")
    if token is None:
        registered = say("select_tool", tool="register", name=NAME, capabilities={"python": True})
        token = registered["token"]
        print("WORKBENCH_TOKEN is", token)
        print("Waiting to be admitted …", hear())
    print(say("authenticate", token=token))
    print(say("whoami"))
    print(say("read", resource_type="contexts", limit=5))
