"""A WebSocket agent. The first run registers and waits until you admit it:

    workbench --project /path/to/project approve my-agent

Keep the token that it prints, and set WORKBENCH_TOKEN to it for later runs.
"""

import json
import os

from websockets.sync.client import connect  # pip install websockets

NAME = "my-agent"

with connect(f"ws://127.0.0.1:8765/ws/{NAME}", proxy=None) as socket:

    def receive():
        return json.loads(socket.recv())

    def call(action, **data):
        socket.send(json.dumps([NAME, action, data]))
        return receive()

    print(receive()["message"])
    token = os.environ.get("WORKBENCH_TOKEN")
    if token is None:
        registered = call("select_tool", tool="register", name=NAME, capabilities={"python": True})
        token = registered["token"]
        print("WORKBENCH_TOKEN is", token)
        print("Waiting to be admitted …", receive())
    print(call("authenticate", token=token))
    print(call("whoami"))
    print(call("read", resource_type="contexts", limit=5))
