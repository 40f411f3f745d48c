"""Functions of a notebook as tools, in real kernels: whatever a function does, its own call ends with an answer or a
coded error, and everything else goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.conftest import Kernel, started
from workbench.client import HttpClient
from workbench.errors import WorkbenchError
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings

pytestmark = [pytest.mark.timeout(120), pytest.mark.long]


class Operator:
    """Calls operations of a project from outside its kernels."""

    def __init__(self, repository: Path) -> None:
        self.settings = Settings(project=repository)
        self._pool = ThreadPoolExecutor(8)

    def call(self, op: str, **arguments: Any) -> dict[str, Any]:
        return self.begin(op, **arguments).result()

    def begin(self, op: str, **arguments: Any) -> Future[dict[str, Any]]:
        """Call an operation and do not wait for it."""
        return self._pool.submit(lambda: asyncio.run(self._call(op, arguments)))

    def tool(self, name: str, **arguments: Any) -> Any:
        """The result of a tool."""
        return self.call("call_tool", name=name, arguments=arguments)["result"]

    def begin_tool(self, name: str, **arguments: Any) -> Future[dict[str, Any]]:
        return self.begin("call_tool", name=name, arguments=arguments)

    def log_of_last_call(self) -> str:
        [event] = self.call("list_newest_events", kinds=["tool.completed"], limit=1)["events"]
        return "\n".join(self.call("get_tool_log", call_id=event["data"]["call_id"])["lines"])

    async def _call(self, op: str, arguments: dict[str, Any]) -> dict[str, Any]:
        server_info = ServerFile(self.settings.server_file).load()
        assert server_info.info is not None
        async with HttpClient(server_info.info.url, server_info.operator_token) as client:
            return await client.call(op, **arguments)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Kernel]:
    with started(tmp_path_factory.mktemp("kernel")) as made:
        made.attempt("%workbench")  # makes wb
        made.run("@wb.tool\ndef early() -> str:\n    return 'defined before the start'")
        made.serve(repository)
        made.run("import asyncio, os, sys, threading")
        yield made


@pytest.fixture(scope="module")
def operator(kernel: Kernel, repository: Path) -> Operator:
    return Operator(repository)


def failure(call: Future[dict[str, Any]]) -> WorkbenchError:
    error = call.exception()
    assert isinstance(error, WorkbenchError)
    return error


def test_a_function_is_a_tool_with_its_signature_as_the_schema(kernel: Kernel, operator: Operator) -> None:
    kernel.run('''
@wb.tool(read_only=True)
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b
''')
    tool = operator.call("get_tool", name="add")
    assert (tool["source"], tool["kind"], tool["description"], tool["read_only"]) == (
        *("local", "function", "Add two numbers.", True),
    )
    assert (tool["parameters"]["required"], tool["problem"]) == (["a"], None)
    assert operator.tool("add", a=1) == {"result": 3}
    assert kernel.run("add(1), wb.tools['add'](a=1, b=1)") == "(3, 2)"
    assert kernel.run("wb.tools['add'](1), wb.tools['add'](1, 4), wb.tools['add'](1, b=5)") == "(3, 5, 6)"
    wrong = {
        "wb.tools['add'](1, 2, 3)": "INVALID_ARGUMENTS: add takes 2 arguments (a, b), not 3.",
        "wb.tools['add'](1, a=2)": "INVALID_ARGUMENTS: add got a twice.",
        "wb.tools['add'](a=1, bb=2)": "INVALID_ARGUMENTS: add: arguments: unknown name bb (did you mean b?).",
        "wb.tools.add(1)": "UNKNOWN_FIELD: Tools has no field 'add'. ",
    }
    kernel.fail_in_a_line(wrong)
    assert [line.split() for line in kernel.run("wb.tools['add']").splitlines()] == [
        ["add", "(function,", "reads)"],
        ["Add", "two", "numbers."],
        [],
        ["Arguments"],
        ["name", "type", "default", "description"],
        ["a", "integer", "required"],
        ["b", "integer", "2"],
        [],
        ["Result"],
        ["name", "type", "description"],
        ["result", "integer"],
    ]
    assert operator.tool("early") == {"result": "defined before the start"}


def test_output_of_a_function_goes_to_the_log_of_its_call_and_into_no_cell(kernel: Kernel, operator: Operator) -> None:
    kernel.run("""

@wb.tool
def chatty(n: int):
    for i in range(n):
        print("line", i)
    print("problem", file=sys.stderr)
@wb.tool
async def chatty_later():
    await asyncio.sleep(0)
    print("later")
""")
    assert kernel.run("wb.tools['chatty'](n=2); print('cell')") == "cell\n"
    assert operator.log_of_last_call() == "line 0\nline 1\nproblem"
    operator.tool("chatty_later")
    assert operator.log_of_last_call() == "later"
    assert kernel.run("1") == "1"


@pytest.mark.parametrize("error", ["ValueError('no')", "SystemExit(3)", "KeyboardInterrupt()", "StopIteration(1)"])
def test_an_exception_of_a_function_fails_only_its_own_call(kernel: Kernel, operator: Operator, error: str) -> None:
    for kind in ("", "async "):
        kernel.run(f"@wb.tool\n{kind}def fails():\n    raise {error}")
        assert failure(operator.begin_tool("fails")).code == "TOOL_FAILED"
        assert "Traceback" in operator.log_of_last_call()
        assert operator.tool("early") == {"result": "defined before the start"}


def test_a_result_that_cannot_be_passed_on_fails_its_own_call(kernel: Kernel, operator: Operator) -> None:
    for code, expected in {
        "def odd(): return 'x' * 50_000_000": "TOOL_RESULT_TOO_LARGE",
        "def odd() -> int: return 'many'": "TOOL_RESULT_INVALID",
        "def odd(): return {'kind': object}": "TOOL_RESULT_INVALID",
        "async def odd(): raise asyncio.CancelledError": "TOOL_INTERRUPTED",
    }.items():
        kernel.run(f"@wb.tool\n{code}")
        assert failure(operator.begin_tool("odd")).code == expected


def test_arrays_tables_and_pictures_are_returned_and_taken_as_what_they_are(kernel: Kernel, operator: Operator) -> None:
    kernel.run("""
import numpy as np, pandas as pd
from IPython.display import Image
@wb.tool
def odd(): return {'x': np.arange(3), 'bytes': b'\\xff', 'nan': float('nan')}
@wb.tool
def table(): return pd.DataFrame({'n': range(5_000)})
@wb.tool
def picture(): return Image(b'png', format='png')
@wb.tool
def mean(df: pd.DataFrame, scale: np.float64 = 1.0) -> float: return df['n'].mean() * scale
""")
    assert json.loads(operator.tool("odd")) == {"x": [0, 1, 2], "bytes": "/w==", "nan": "NaN"}
    rows, cut = operator.tool("table").split("\n")
    assert (len(json.loads(rows)), cut.startswith("Cut: the first 1,000 of 5,000 rows.")) == (1_000, True)
    assert operator.tool("picture") == [{"type": "image", "data": "cG5n", "mimeType": "image/png"}]
    assert kernel.run("wb.tools['mean'](pd.DataFrame({'n': [1, 4]}), scale=np.float32(2))") == "5.0"
    kernel.fail_in_a_line(
        {"wb.tools['mean'](df=Image(b'png'))": "INVALID_ARGUMENTS: call_tool: arguments.df is IPython."}
    )


def test_a_function_that_hangs_is_interrupted_and_others_go_on(kernel: Kernel, operator: Operator) -> None:
    kernel.run("@wb.tool\nasync def later() -> int:\n    await asyncio.sleep(0)\n    return 1")
    for code in (
        "def endless():\n    while True: pass",
        "async def endless():\n    await asyncio.Event().wait()",
        "async def endless():\n    while True: pass",
    ):
        kernel.run(f"@wb.tool(seconds=0.5)\n{code}")
        hanging = operator.begin_tool("endless")
        assert operator.tool("early") == {"result": "defined before the start"}
        assert failure(hanging).code == "TOOL_TIMEOUT"
        assert operator.tool("later") == {"result": 1}


def test_two_calls_run_at_once_and_a_redefinition_is_for_later_calls(kernel: Kernel, operator: Operator) -> None:
    kernel.run("both, go_on = threading.Barrier(3), threading.Event()")
    kernel.run("@wb.tool\ndef meet() -> str:\n    both.wait(); go_on.wait(); return 'old'")
    before = operator.call("get_tool", name="meet")["version"]
    calls = [operator.begin_tool("meet"), operator.begin_tool("meet")]
    kernel.run("both.wait()")
    kernel.run("@wb.tool\ndef meet() -> str:\n    return 'new'")
    assert operator.tool("meet") == {"result": "new"}
    assert operator.call("get_tool", name="meet")["version"] != before
    kernel.run("go_on.set()")
    assert [call.result()["result"] for call in calls] == [{"result": "old"}, {"result": "old"}]


def test_a_cell_that_calls_a_tool_and_is_interrupted_interrupts_the_function(kernel: Kernel) -> None:
    kernel.run(
        "begun, ended = threading.Event(), threading.Event()\n"
        "@wb.tool\nasync def waits():\n"
        "    begun.set()\n    try:\n        await asyncio.Event().wait()\n    finally:\n        ended.set()"
    )
    kernel.run("threading.Thread(target=lambda: (begun.wait(), os.kill(os.getpid(), 2))).start()")
    assert kernel.error("wb.tools['waits']()").startswith("Interrupted: CALL_INTERRUPTED: ")
    kernel.run("ended.wait()")


def test_an_interrupt_is_the_cells_while_one_runs_and_otherwise_the_functions(
    kernel: Kernel, operator: Operator
) -> None:
    kernel.run(
        "begun, go_on = threading.Semaphore(0), threading.Event()\n"
        "@wb.tool\ndef patient() -> str:\n    begun.release(); go_on.wait(); return 'patient'\n"
        "@wb.tool\ndef endless():\n    begun.release()\n    while True: pass"
    )
    patient = operator.begin_tool("patient")
    kernel.run("begun.acquire()")
    assert kernel.fail("os.kill(os.getpid(), 2)\nwhile True: pass")["ename"] == "KeyboardInterrupt"
    kernel.run("go_on.set()")
    assert patient.result()["result"] == {"result": "patient"}
    endless = operator.begin_tool("endless")
    kernel.run("begun.acquire()")
    kernel.manager.interrupt_kernel()
    assert failure(endless).code == "TOOL_INTERRUPTED"
    assert kernel.run("1") == "1"


def test_a_function_reports_its_progress(kernel: Kernel) -> None:
    kernel.run("@wb.tool\ndef steps() -> str:\n    wb.progress(1, 2, 'half'); heard.wait(); return 'done'")
    kernel.run("""
from workbench.ops import OPERATOR
from workbench.services.tools import calls
from workbench.rules.tools.surroundings import Surroundings
from workbench.services.tools.tool import ToolScope
heard, reports = threading.Event(), []
async def note(*report):
    reports.append(report)
    heard.set()
""")
    call = "calls.call(wb.host.workbench._ctx, ToolScope(OPERATOR), 'steps', {}, Surroundings(progress=note))"
    assert kernel.run(f"wb.host.wait({call}).outcome.structured, reports") == (
        "({'result': 'done'}, [(1.0, 2.0, 'half')])"
    )
    assert kernel.run("steps()") == "'done'"


def test_a_function_that_cannot_be_a_tool_is_refused_in_its_cell(kernel: Kernel) -> None:
    for code, expected in {
        "@wb.tool\ndef create_task(): pass": "Conflict: TOOL_NAME_TAKEN",
        "@wb.tool\ndef a__b(): pass": "BadInput: BAD_TOOL",
        "@wb.tool\ndef many(*values): pass": "BadInput: BAD_TOOL",
        "@wb.tool(trait='a/b')\ndef never(): pass": "BadInput: BAD_TOOL",
    }.items():
        assert kernel.error(code).startswith(expected)


def test_deleting_its_name_withdraws_a_function_and_a_stop_withdraws_all(
    kernel: Kernel, operator: Operator, repository: Path
) -> None:
    kernel.run("@wb.tool\ndef short_lived(): pass")
    assert operator.tool("short_lived") == "null"
    kernel.run("del wb.tools['short_lived']")
    assert failure(operator.begin_tool("short_lived")).code == "UNKNOWN_TOOL"
    assert kernel.error("wb.tools['short_lived']")
    assert kernel.run("'short_lived' in wb.tools, 'early' in wb.tools") == "(False, True)"
    kernel.run("begun = threading.Event()\n@wb.tool\ndef hangs():\n    begun.set()\n    while True: pass")
    hanging = operator.begin_tool("hangs")
    kernel.run("begun.wait()")
    assert kernel.run("%workbench stop").strip() == "Workbench is stopped."
    assert failure(hanging).code in ("TOOL_HOST_GONE", "TOOL_INTERRUPTED", "NO_SERVER")
    assert "_Divided" not in kernel.run("type(sys.stdout).__name__")
    kernel.serve(repository)
    assert operator.tool("early") == {"result": "defined before the start"}


@pytest.mark.long
@pytest.mark.timeout(240)
def test_functions_of_an_attached_kernel_survive_the_server_but_not_the_kernel(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    operator = Operator(tmp_path)
    defined = "import threading\n@wb.tool\ndef where(): import os; return os.getpid()\n"
    with (
        started(tmp_path_factory.mktemp("first")) as first,
        started(tmp_path_factory.mktemp("second")) as second,
        started(tmp_path_factory.mktemp("third")) as third,
    ):
        for kernel in (first, second, third):
            kernel.serve(tmp_path)
        second.run(defined)
        pids = [kernel.run("import os; os.getpid()") for kernel in (first, second, third)]
        assert operator.tool("where") == pids[1]
        third.run(defined.replace("@wb.tool", "@wb.tool(replace=True)"))
        assert operator.tool("where") == pids[2]
        first.kill()  # one of the others serves now
        assert second.run("wb.call('ping')['ok']") == third.run("wb.call('ping')['ok']") == "True"
        second.run("while 'where' not in wb.tools: pass")
        assert operator.tool("where") in pids[1:]
        serving, attached = (second, third) if "False" in second.run("wb.host.attached") else (third, second)
        attached.run("@wb.tool\ndef hangs():\n    threading.Event().wait()")
        hanging = operator.begin_tool("hangs")
        serving.run("while not wb.call('list_tool_calls', state='running')['calls']: pass")
        attached.kill()
        assert failure(hanging).code == "TOOL_HOST_GONE"
        assert "does not answer" in operator.call("get_tool", name="hangs")["problem"]
        assert failure(operator.begin_tool("hangs")).code == "TOOL_UNAVAILABLE"
        assert operator.tool("where") == serving.run("os.getpid()")
