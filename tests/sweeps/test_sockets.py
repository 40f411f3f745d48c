"""Kernels listen where nobody else does, and deliver everything that cells show."""

from __future__ import annotations

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from nbclient.exceptions import CellTimeoutError

from tests.sweeps.lab import new_notebook
from workbench.sweeps import engine, failures
from workbench.sweeps.outputs import OutputLimit
from workbench.sweeps.watch import Kernel

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

ABOUT = """
import json, os, stat
from ipykernel.connect import get_connection_info
about = get_connection_info(unpack=True)
place = os.path.dirname(about["ip"])
private = not place or stat.S_IMODE(os.stat(place).st_mode) == 0o700
print(json.dumps({"transport": about["transport"], "place": place, "private": private}))
"""


class Waiting(OutputLimit):
    """Lets the first output wait until a file is there; meanwhile none is read."""

    def __init__(self, until: Path) -> None:
        super().__init__(10**9)
        self._until = until

    def cut(self, kind: str, content: dict[str, Any]) -> dict[str, Any] | None:
        """Called for each message of the kernel."""
        while kind == "display_data" and not self._until.exists():
            pass
        return super().cut(kind, content)


def prepared(place: Path, limit: OutputLimit | None = None) -> engine.Execution:
    """An execution in a directory."""
    kernel = Kernel()
    return engine.Execution(kernel, kernel.environment(os.environ), place, limit or OutputLimit(10**6))


def executed(place: Path, cell: str, limit: OutputLimit | None = None) -> engine.Execution:
    """A notebook with one cell, executed in a thread, as sweeps do: the main one may have a running loop."""
    execution = prepared(place, limit)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(engine.execute, new_notebook(cell), {}, execution).result()
    return execution


def outputs(execution: engine.Execution) -> list[Any]:
    return list(execution.document.cells[0].outputs)


def about_sockets(place: Path) -> dict[str, Any]:
    [printed] = outputs(executed(place, ABOUT))
    return dict(json.loads(printed.text))


def test_a_kernel_listens_in_a_private_directory_or_on_ports_for_long_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = about_sockets(tmp_path)
    assert (found["transport"], found["private"]) == ("ipc", True)
    assert not Path(found["place"]).exists()
    (place := tmp_path / ("long" * 25)).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    assert about_sockets(tmp_path)["transport"] == "tcp"
    assert [*place.iterdir()] == []


def test_an_event_loop_of_the_calling_thread_stays_as_it_is(tmp_path: Path) -> None:
    execution, loop = prepared(tmp_path), asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        engine.execute(new_notebook("6 * 7"), {}, execution)
        assert asyncio.get_event_loop() is loop
        assert loop.run_until_complete(asyncio.sleep(0, "open")) == "open"
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    assert outputs(execution)[0].data["text/plain"] == "42"


def test_no_output_is_dropped_when_a_kernel_shows_many_while_nobody_reads(tmp_path: Path) -> None:
    cell = "for number in range(5_000): display(number)\nopen('shown', 'w').close()"
    shown = outputs(executed(tmp_path, cell, Waiting(tmp_path / "shown")))
    assert [int(output.data["text/plain"]) for output in shown] == [*range(5_000)]


def test_outputs_that_do_not_arrive_are_a_coded_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel does not say that it has sent the last one."""
    monkeypatch.setattr(engine, "OUTPUT_SECONDS", 1)
    silent = "get_ipython().kernel._publish_status = lambda *_, **__: None"
    silent += "\nget_ipython().kernel._publish_status_and_flush = lambda *_, **__: None"
    with pytest.raises(CellTimeoutError) as raised:
        executed(tmp_path, silent)
    failure = failures.of(raised.value, Kernel(), None, None)
    assert failure is not None
    assert failure.code == "OUTPUTS_LOST"
