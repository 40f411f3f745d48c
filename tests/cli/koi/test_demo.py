"""`workbench koi demo`: the stand-alone roles in processes of their own, a coordinator and two agents."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import psutil
import pytest

from tests.chance import some_of
from tests.cli.conftest import data
from tests.conftest import Command

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(180)]


async def test_the_demo_shows_discovery_and_a_call_and_leaves_nothing_running(
    program: Command, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(place))
    ran = await program("--json", "koi", "demo")
    assert ran.status == 0, ran.err
    shown = data(ran._replace(err=""))
    assert [(personality["name"], personality["tools"]) for personality in shown["personalities"]] == [
        ("creative-agent", ["title"]),
        ("helpful-agent", ["calculate"]),
    ]
    assert shown["result"] == 42
    call = shown["call"]
    assert (call["state"], call["origin_node"].startswith("orn:koi-net.node:coordinator+")) == ("completed", True)
    assert running(place) == []


async def test_a_demo_that_is_ended_leaves_nothing_running(place: Path) -> None:
    for number in some_of([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]):  # each is met by the same few lines
        agents, status = await ended_demo(place, number)
        while status == 0:  # it was through before the signal came
            agents, status = await ended_demo(place, number)
        assert agents
        assert status == 130
        assert (running(place), [*place.iterdir()]) == ([], [])


async def ended_demo(place: Path, number: signal.Signals) -> tuple[list[str], int]:
    """End a demo by a signal when its agents run; what ran then, and its exit status."""
    demo = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workbench.cli", "koi", "demo"), env={**os.environ, "TMPDIR": str(place)}, stderr=PIPE
    )
    try:
        assert demo.stderr is not None
        while b"creative-agent" not in (line := await demo.stderr.readline()):
            assert line, "the demo has ended"
        agents = running(place)
        demo.send_signal(number)
        await demo.communicate()
    finally:
        if demo.returncode is None:
            demo.terminate()
            await demo.communicate()
    assert demo.returncode is not None
    return agents, demo.returncode


def running(place: Path) -> list[str]:
    """The arguments of processes that name a directory of the demo."""
    found = [part for process in psutil.process_iter(["cmdline"]) for part in process.info["cmdline"] or ()]
    return [part for part in found if f"{place}/workbench-koi-" in part]
