"""`workbench koi demo`: the stand-alone roles in processes of their own, a coordinator and two agents."""

from __future__ import annotations

import psutil
import pytest

from tests.cli.conftest import data
from tests.conftest import Command

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(180)]


async def test_the_demo_shows_discovery_and_a_call_and_leaves_nothing_running(command: Command) -> None:
    ran = await command("--json", "koi", "demo")
    assert ran.status == 0, ran.err
    shown = data(ran._replace(err=""))
    assert [(one["name"], one["tools"]) for one in shown["personalities"]] == [
        ("creative-agent", ["title"]),
        ("helpful-agent", ["calculate"]),
    ]
    assert shown["result"] == 42
    call = shown["call"]
    assert (call["state"], call["origin_node"].startswith("orn:koi-net.node:coordinator+")) == ("completed", True)
    running = [part for process in psutil.process_iter(["cmdline"]) for part in process.info["cmdline"] or ()]
    assert [part for part in running if "workbench-koi-" in part] == []
