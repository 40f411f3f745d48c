"""Calls a function of the project in the current directory with a task; a program of its own, without Workbench.

    python -P run_function.py package.module:name < task.json

The task comes as JSON on standard input. What the function returns (awaited, if need be) is written to
`WORKBENCH_RESULT` as `{"result": …}`; None writes nothing.
"""

import asyncio
import importlib
import importlib.util
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
    directory = Path.cwd()
    sys.path[:0] = [str(directory), str(directory / "src")]
    module, _, path = name.partition(":")
    function: Any = importlib.import_module(module)
    for part in path.split("."):
        function = getattr(function, part)
    result = function(task)
    if inspect.isawaitable(result):
        result = asyncio.run(_wait_for(result))
    if result is not None:
        Path(os.environ["WORKBENCH_RESULT"]).write_text(_as_json(result), "utf-8")


def _as_json(result: Any) -> str:
    """A result as JSON: arrays, tables, dates and the like as `rules/plain.py` has them, which is read where needed."""
    try:
        return json.dumps({"result": result}, allow_nan=False)
    except (TypeError, ValueError):
        place = Path(__file__).parents[1] / "rules" / "plain.py"
        spec = importlib.util.spec_from_file_location("workbench_plain", place)
        assert spec is not None
        assert spec.loader is not None
        plain = sys.modules["workbench_plain"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(plain)
        return json.dumps({"result": plain.Plain().of(result, "result")}, allow_nan=False)


async def _wait_for(result: Awaitable[Any]) -> Any:
    return await result


if __name__ == "__main__":
    call(sys.argv[1])
