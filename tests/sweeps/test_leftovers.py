"""A new sweep ends and removes the leftovers of killed ones, and leaves those in use alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from workbench.process.marks import marked
from workbench.rules.sweeps.grid import sweep_mark
from workbench.state.settings import Settings
from workbench.sweeps import sockets
from workbench.sweeps.leftovers import LOCK, end_leftovers, only_one
from workbench.system import file_lock


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory in which paths of sockets are not too long, as they might be in pytest's own."""
    with tempfile.TemporaryDirectory(prefix="workbench-") as path:
        yield Path(path)


def test_the_sockets_of_killed_sweeps_are_removed_and_those_in_use_stay(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(short))
    left = Path(tempfile.mkdtemp(prefix="workbench-kernel-"))
    (left / "kernel-1").touch()
    others = [Path(tempfile.mkdtemp(prefix="workbench-")), short / "workbench-kernel-link"]
    others[1].symlink_to(others[0])
    with sockets.directory() as used:
        assert used is not None
        sockets.remove_left()
        assert not left.exists()
        assert used.exists()
    assert {*short.iterdir()} == {*others}


@pytest.mark.long
def test_processes_of_killed_sweeps_are_ended_and_those_of_running_ones_stay(settings: Settings) -> None:
    program = [sys.executable, "-c", "import time; print('runs', flush=True); time.sleep(100)"]
    with ExitStack() as stack:
        processes = {}
        for name in ("killed", "running", "elsewhere"):
            place = settings.runs / name
            place.mkdir(parents=True)
            project = "/another" if name == "elsewhere" else str(settings.project)
            env = marked(os.environ, sweep_mark(name, project))
            (place / LOCK).touch()
            processes[name] = stack.enter_context(subprocess.Popen(program, env=env, stdout=subprocess.PIPE))
            stack.callback(processes[name].kill)
        for process in processes.values():
            assert process.stdout is not None
            process.stdout.readline()
        with file_lock.held(settings.runs / "running" / LOCK):
            end_leftovers(settings)
        assert processes["killed"].wait() is not None
        assert [processes[name].poll() for name in ("running", "elsewhere")] == [None, None]
        assert not (settings.runs / "killed" / LOCK).exists(), "it would be searched for again and again"


def test_an_ended_sweep_is_not_taken_for_a_killed_one(settings: Settings) -> None:
    with only_one(settings, "done"):
        assert (settings.runs / "done" / LOCK).exists()
    assert [*(settings.runs / "done").iterdir()] == []
