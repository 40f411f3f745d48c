"""A machine's server is killed: its agents go on, another server takes the turn, and its next one takes them back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import given
from tests.machines.conftest import NewMachine, serving
from workbench.app import Workbench

pytestmark = [pytest.mark.anyio, pytest.mark.postgres, pytest.mark.long, pytest.mark.timeout(120)]

SILENT = "10"


def command(project: Path, url: str, *words: str) -> tuple[list[str], dict[str, str]]:
    """The command of a person at beta, and its variables."""
    variables = {
        "WORKBENCH_DATABASE_URL": url,
        "WORKBENCH_MACHINE": "beta",
        "WORKBENCH_SERVER_SILENT_SECONDS": SILENT,
        "WORKBENCH_PORT": "0",
    }
    return [sys.executable, "-m", "workbench.cli", "--project", str(project), *words], os.environ | variables


@contextmanager
def server_of_beta(project: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """Beta's server, a process of its own; killed at the end."""
    argv, env = command(project, url, "serve")
    with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            yield server
        finally:
            server.kill()


async def beta_of(workbench: Workbench) -> dict[str, Any]:
    """What is said of beta's last server."""
    servers = (await workbench.call("list_servers"))["servers"]
    return next((dict(row) for row in servers if row["machine"] == "beta"), {"state": "none", "has_turn": False})


def runs(pid: int) -> bool:
    """Whether a process runs; nobody may wait for one whose parent was killed."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


async def beta_has_turn(workbench: Workbench) -> bool:
    return bool((await beta_of(workbench))["has_turn"])


async def is_reattached(workbench: Workbench) -> bool:
    return bool((await workbench.call("list_events", kinds=["agent.reattached"]))["events"])


async def test_a_killed_server_loses_its_turn_but_not_its_agents(machine: NewMachine, postgres_url: str) -> None:
    there = machine("beta").project
    here = machine("alpha").model_copy(update={"server_silent_seconds": float(SILENT)})
    async with Workbench.open(here) as watching:
        with server_of_beta(there, postgres_url) as server:
            await given.until(lambda: beta_has_turn(watching))
            argv, env = command(there, postgres_url, "call", "spawn_agent", "persona_id=implementer")
            spawned = json.loads(subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout)
            server.kill()
            server.wait()
        async with serving(here) as alpha:
            assert not alpha._ctx.has_turn
            await given.until(lambda: alpha._ctx.has_turn)
            assert (await beta_of(alpha))["state"] == "silent"
            (agent,) = (await alpha.call("get_managed_agents"))["agents"]
            assert (agent["process"]["machine"], agent["process"]["running"]) == ("beta", True)
            assert runs(spawned["pid"])
            with server_of_beta(there, postgres_url):
                assert await given.until(lambda: is_reattached(alpha))
                assert not (await beta_of(alpha))["has_turn"]
                await alpha.call("terminate_agent", agent_id=spawned["agent_id"])
                assert not runs(spawned["pid"])
