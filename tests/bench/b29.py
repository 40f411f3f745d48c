"""B29: a function of one project's notebook in another project: two kernels that serve their projects, on one network.

From the first statement of the cell, or from the interrupt, to what a cell of the other kernel sees. Times are of the
clock that all processes share.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.project import scratch
from tests.bench.rows import Row, Samples, by_name, within
from tests.kernel.conftest import Kernel, started
from tests.kernel.test_tools import Operator

RERUN = "the cell is run again: the new version is there, the slowest of 10"
FORGET = "the function is removed: its trait is not there any more, the slowest of 10"
INTERRUPT = "the kernel is interrupted: the call has failed with TOOL_INTERRUPTED"
SETUP = "import json, threading, time\nfrom workbench.errors import NotFound\nbegun = threading.Event()"
AT_HOME = """
def version(name):
    try:
        return wb.call("get_tool", name=name)["version"]
    except NotFound:
        return None

def changed(name, before):
    while (now := version(name)) == before:
        time.sleep(0.001)
    return json.dumps([now, time.monotonic()])

def called(name):
    try:
        wb.call("call_tool", name=name, arguments={})
    except Exception as error:
        return json.dumps([error.code, time.monotonic()])
"""
DEFINE = """
began = time.monotonic()
@wb.tool(trait=True)
def answer() -> int:
    return {number}
print(began)
"""
REMOVE = "began = time.monotonic()\ndel wb.tools['answer']\nprint(began)"
ENDLESS = """
begun.clear()
@wb.tool(trait=True)
def endless():
    begun.set()
    while True: pass
"""


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Milliseconds; of the changes the slowest of some in each round."""
    count = 2 if quick else 10
    with scratch() as directory, _network(directory) as (lab, home), ThreadPoolExecutor(1) as pool:
        pair = Pair(lab, home, pool)
        pair.changes(1)  # the first of all loads what the others find loaded
        return by_name([{**pair.changes(count), INTERRUPT: pair.interrupt()} for _ in range(rounds)], "ms")


@contextmanager
def _network(directory: Path) -> Iterator[tuple[Kernel, Kernel]]:
    """The kernels of the projects `lab` and `home`, whose first contact is `lab`."""
    with started(directory) as lab, started(directory) as home:
        operators = []
        for name, kernel in (("lab", lab), ("home", home)):
            (project := directory / name).mkdir()
            kernel.run(f'%workbench start --project "{project}" --port 0')
            kernel.run(SETUP)
            operators.append(Operator(project))
        there = operators[0].call("join_network", name="lab")
        operators[1].call("join_network", first_contact=there["base_url"], name="home")
        home.run(AT_HOME)
        lab.run(DEFINE.format(number=0))
        home.run("_ = changed('lab__answer', None)")
        operators[0].call("set_peer_permission", peer="home", permission="always")
        yield lab, home


class Pair:
    """The kernel whose functions are traits, and the one that calls them."""

    def __init__(self, lab: Kernel, home: Kernel, pool: ThreadPoolExecutor) -> None:
        self._lab, self._home, self._pool = lab, home, pool
        self._number = 0

    def changes(self, count: int) -> dict[str, float]:
        """Milliseconds of the slowest of some changes of each kind."""
        times: dict[str, list[float]] = {RERUN: [], FORGET: []}
        for _ in range(count):
            times[RERUN].append(self._change(self._define()))
            times[FORGET].append(self._change(REMOVE))
            self._change(self._define())
        return {name: max(each) * 1e3 for name, each in times.items()}

    def interrupt(self) -> float:
        """Milliseconds from an interrupt of the kernel that runs a call to the error of the call in the other one."""
        self._lab.run(ENDLESS)
        self._home.run("_ = changed('lab__endless', None)")
        hanging = self._pool.submit(self._home.run, "print(called('lab__endless'))")
        self._lab.run("begun.wait()")
        began = time.monotonic()
        self._lab.manager.interrupt_kernel()
        code, at = json.loads(hanging.result())
        assert code == "TOOL_INTERRUPTED", code
        self._lab.run("del wb.tools['endless']")
        self._home.run("while version('lab__endless'): time.sleep(0.001)")
        return float(at - began) * 1e3

    def _define(self) -> str:
        self._number += 1
        return DEFINE.format(number=self._number)

    def _change(self, code: str) -> float:
        """Seconds from the beginning of a cell to when the other project has another version of its function."""
        before: Any = json.loads(self._home.run("print(json.dumps(version('lab__answer')))"))
        waiting = self._pool.submit(self._home.run, f"print(changed('lab__answer', {before!r}))")
        began = float(self._lab.run(code))
        return float(json.loads(waiting.result())[1]) - began


ROW = Row(
    "B29",
    "a function of one notebook as a trait in another project's kernel",
    "–",
    {RERUN: within(250, "ms"), FORGET: within(250, "ms"), INTERRUPT: within(1_000, "ms")},
    run,
)
