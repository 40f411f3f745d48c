"""Runs commands that are killed when they are about to change files: `python -m tests.cli.killed` reads them as JSON.

A command is `{"words": […], "environment": {…}, "at": 0.5}`: it is killed before that part of the changes that the
first one, which is not killed, has made. What comes of it is one line of JSON. Each is a fork: Python starts once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from tests.conftest import typed
from workbench.archives import making, restoring  # noqa: F401 (so that no fork has to)

CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "sqlite3.connect", "subprocess.Popen"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def run(words: list[str], environment: dict[str, str], last: int | None) -> dict[str, Any]:
    """Run one command, which is killed before its `last` change: its status, what it wrote, and its changes."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.close(reading)
        os.environ.update(environment)
        changes = 0

        def count(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal changes
            if event in CHANGES or (event == "open" and arguments[2] & WRITES):
                changes += 1
                if changes == last:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        ran = typed(*words)
        answer = {"status": ran.status, "out": ran.out, "err": ran.err, "changes": changes}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        written = pipe.read()
    os.waitpid(child, 0)
    return json.loads(written) if written else {"status": -signal.SIGKILL, "out": "", "err": "", "changes": last}


def main() -> None:
    """Run the commands of standard input."""
    changes = 0
    for job in json.load(sys.stdin):
        last = None if job["at"] is None else 1 + int(job["at"] * changes)
        answer = run(job["words"], job["environment"], last)
        changes = changes or answer["changes"]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
