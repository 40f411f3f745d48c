"""Calls a function of the project in the current directory with a task; a program of its own, without Workbench.

    python -P run_function.py package.module:name < task.json

The task comes as JSON on standard input. What the function returns (awaited, if need be) is written to
`WORKBENCH_RESULT` as `{"result": …}`; None writes nothing.
"""

import asyncio
import importlib
import inspect
import json
import os
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any


def call(name: str) -> None:
    """Import the function and call it."""
    task = json.load(sys.stdin)
    here = Path.cwd()
    sys.path[:0] = [str(here), str(here / "src")]
    module, _, path = name.partition(":")
    function: Any = importlib.import_module(module)
    for part in path.split("."):
        function = getattr(function, part)
    result = function(task)
    if inspect.isawaitable(result):
        result = asyncio.run(_awaited(result))
    if result is not None:
        text = json.dumps({"result": result}, allow_nan=False)
        Path(os.environ["WORKBENCH_RESULT"]).write_text(text, "utf-8")


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result


if __name__ == "__main__":
    call(sys.argv[1])
