"""An MCP server for tests, on standard input and output, that answers with what its first argument says, as JSON.

`answers`: results by method; `before`: text that it writes first; `sent`: the bytes of an answer to a call, in which
`"ID"` and `NUMBER` stand for the number of the call; `asks`: messages before the answer to a call; `repeats`: that
answer is what it was told; `end`: of each line.
"""

from __future__ import annotations

import json
import sys
from typing import Any

call = 0
SAYS: dict[str, Any] = json.loads(sys.argv[1])
ANSWERS: dict[str, Any] = SAYS["answers"]


def write(text: str) -> None:
    """Write a line as bytes: surrogates are bytes that are no UTF-8."""
    sys.stdout.buffer.write(text.encode(errors="surrogateescape") + SAYS.get("end", "\n").encode())
    sys.stdout.buffer.flush()


if "before" in SAYS:
    write(SAYS["before"])
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if SAYS.get("repeats") and message.get("id") == SAYS["asks"][0]["id"]:
        write(json.dumps({"jsonrpc": "2.0", "id": call, "result": {"content": [{"type": "text", "text": line}]}}))
    if method is None or "id" not in message:
        continue
    if method == "tools/call":
        for asked in SAYS.get("asks", ()):
            write(json.dumps(asked))
        call = message["id"]
        if SAYS.get("repeats"):
            continue
        if "sent" in SAYS:
            write(SAYS["sent"].replace('"ID"', json.dumps(message["id"])).replace("NUMBER", str(message["id"])))
            continue
    result = ANSWERS.get(method)
    answer: dict[str, Any] = {"result": result} if method in ANSWERS else {"error": {"code": -32601, "message": "no"}}
    write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}))
