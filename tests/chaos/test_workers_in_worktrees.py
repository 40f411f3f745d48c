"""Agents that are spawned, work, and end in every way there is, over and over: nothing of any of them stays."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import psutil
import pytest

from tests.chance import SOAK, chance
from tests.conftest import Served, git
from workbench.app import Workbench
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.chaos]

ROUNDS = 500 * SOAK or 6
AT_ONCE = 2

WORK = {
    "quick": "echo $WORKBENCH_ATTEMPT > $WORKBENCH_TASK_ID.txt",
    "failing": "echo half > half.txt; exit 1",
    "busy": "echo $$ > pid; sleep 600",
    "deaf": "trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 0.1; done",
    "forked": "(setsid sh -c 'trap \"\" TERM; sleep 600 & sleep 600' &) ; echo $$ > pid; sleep 600",
    "committing": "echo $$ > pid; n=0; while :; do n=$((n+1)); echo $n > n.txt; git add n.txt; git commit -qm $n; done",
}
"""What a task's command does; those that write `pid` do not end by themselves."""
ENDS = ("terminate", "kill", "stop", "crash", "revoke", "discard")
"""What ends the agent: asked to, SIGKILL, SIGTERM, its command and itself killed, its admission taken, its place."""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Scratch directories go where they can be counted."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def rounds(random: Random) -> Iterator[tuple[str, str]]:
    """Works and ends, for ever; each of them in every six."""
    while True:
        yield from zip(random.sample(sorted(WORK), len(WORK)), random.sample(ENDS, len(ENDS)), strict=True)


async def cycle(served: Served, number: int, what: str, how: str) -> None:
    """An agent and its worktree from their beginning to their end."""
    name = f"w{number}"
    call = served.workbench.call
    await call("create_worktree", name=name)
    spawned = await call("spawn_agent", persona_id="implementer", assigned_worktree=name, name=name)
    new = {"title": what, "persona_id": "implementer", "target_worktree": name, "max_retries": 0}
    task = await call("create_task", **new, run=WORK[what])
    place = served.workbench.settings.worktrees / name
    await until_begun(served, task["id"], place, "pid" in WORK[what])
    if how != "discard":
        await end(served, name, spawned["pid"], how, place)
    while (await call("get_agent_process_info", agent_id=name))["running"] and how != "discard":
        await asyncio.sleep(0.01)
    await call("discard_worktree", worktree_name=name, force=True)
    status = await call("get_task_status", task_id=task["id"])
    assert status["status"] in ("completed", "failed", "pending")
    assert status["assigned_agent_id"] is None or status["status"] in ("completed", "failed")


async def until_begun(served: Served, task_id: int, place: Path, writes: bool) -> None:
    """Return when the command runs, or has ended if it ends by itself."""
    while (await served.workbench.call("get_task_status", task_id=task_id))["status"] in ("pending", "claimed"):
        await asyncio.sleep(0.01)
    while writes and not ((place / "pid").exists() and (place / "pid").read_text().strip()):
        await asyncio.sleep(0.01)


async def end(served: Served, name: str, pid: int, how: str, place: Path) -> None:
    if how == "terminate":
        await served.workbench.call("terminate_agent", agent_id=name)
    elif how == "revoke":
        await served.workbench.call("revoke_agent", agent_id=name)
    elif how == "stop":
        os.kill(pid, signal.SIGTERM)
    else:
        if how == "crash" and (place / "pid").exists():
            with suppress(ProcessLookupError, ValueError):
                os.kill(int((place / "pid").read_text()), signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)


def below(project: Path) -> list[str]:
    """Processes that work in a project, or were started for it."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                said = [process.cwd(), process.environ().get("WORKBENCH_PROJECT", ""), *process.cmdline()]
                found += [" ".join(process.cmdline())] if any(str(project) in part for part in said) else []
    return found


def locks(project: Path) -> list[Path]:
    """Lock files that git left."""
    return list((project / ".git").rglob("*.lock"))


@pytest.mark.timeout(7_000 if SOAK else 900)
async def test_an_agent_leaves_nothing_behind_however_it_ends(
    settings: Settings, repository: Path, temporary: Path
) -> None:
    before = psutil.Process().num_fds()
    async with Workbench.open(settings) as workbench, Servers(workbench) as servers:
        served = Served(workbench, await servers.start(0), servers)
        numbered = enumerate(itertools.islice(rounds(chance()), ROUNDS))

        async def go_on() -> None:
            for number, (what, how) in numbered:
                print(f"{how}: {what}", flush=True)
                await cycle(served, number, what, how)

        await asyncio.gather(*(go_on() for _ in range(AT_ONCE)))
        while left := [a for a in (await workbench.call("get_managed_agents"))["agents"] if a["process"]["running"]]:
            await asyncio.sleep(0.02)
        assert left == []
        assert below(repository) == []
        assert list(temporary.iterdir()) == []
        assert list((repository / ".aiswarm" / "worktrees").iterdir()) == []
        assert list((repository / ".aiswarm" / "repositories").iterdir()) == []
        assert locks(repository) == []
        assert "worktree" not in git("worktree", "list", "--porcelain", cwd=repository).partition("\n\n")[2]
        git("fsck", "--strict", cwd=repository)
    assert psutil.Process().num_fds() <= before + 2
