"""A project to measure on: agents admitted, tasks filled in bulk, drained by all agents at once."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from workbench.app import Workbench
from workbench.ops import Caller
from workbench.state.settings import Settings
from workbench.store.base import Tx
from workbench.store.queries import beside
from workbench.trust import state_directory

SQL = beside(__file__)
T = TypeVar("T")

SESSION = "load"
"""The name of the session of a project whose agents write contexts."""


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A directory for one row, on the disk of the machine's temporary files."""
    with tempfile.TemporaryDirectory(prefix="workbench-bench-") as directory:
        yield Path(directory)


@dataclass(frozen=True)
class Seed:
    """A project that was prepared once; copies of it are measured."""

    root: Path
    tokens: Sequence[str]

    def copy(self, to: Path) -> Path:
        """A fresh copy, in place of the last one there. Nobody may have either open."""
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.root, to)
        state_directory.adopt(to)
        return to


def prepare(root: Path, *, agents: int, tasks: int, mixed: bool = False, database_url: str | None = None) -> Seed:
    """A closed project with admitted agents and claimable tasks (see project.sql for mixed ones)."""
    root.mkdir()

    async def make() -> list[str]:
        async with opened(root, database_url) as workbench:
            tokens = [await _admit(workbench, f"agent-{number}") for number in range(agents)]
            await workbench.store.write(lambda tx: fill(tx, tasks, mixed))
            return tokens

    return Seed(root, asyncio.run(make()))


@contextlib.asynccontextmanager
async def opened(root: Path, database_url: str | None = None) -> AsyncIterator[Workbench]:
    """The project, open."""
    async with Workbench.open(Settings(project=root, port=0, database_url=database_url)) as workbench:
        yield workbench


class Running:
    """An open project, driven from code that is not asynchronous."""

    def __init__(self, runner: asyncio.Runner, workbench: Workbench, callers: Sequence[Caller]) -> None:
        self._runner = runner
        self.workbench = workbench
        self.callers = callers

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the project's loop."""
        return self._runner.run(work)


@contextlib.contextmanager
def running(root: Path, tokens: Sequence[str], database_url: str | None = None) -> Iterator[Running]:
    """Open a project and identify its agents."""
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        workbench = runner.run(stack.enter_async_context(opened(root, database_url)))
        try:
            yield Running(runner, workbench, runner.run(identify(workbench, tokens)))
        finally:
            runner.run(stack.aclose())


async def identify(workbench: Workbench, tokens: Sequence[str]) -> list[Caller]:
    """Who the tokens belong to."""
    return [await workbench.identify(token) for token in tokens]


async def drain(workbench: Workbench, callers: Sequence[Caller]) -> list[int]:
    """Let every agent claim and complete until there is nothing left; which tasks were completed."""

    async def work(caller: Caller) -> list[int]:
        done = []
        while (claim := await workbench.dispatch(caller, "claim_task", {}))["task"]:
            task_id = claim["task"]["id"]
            await workbench.dispatch(caller, "complete_task", {"task_id": task_id})
            done.append(task_id)
        return done

    return [task_id for done in await asyncio.gather(*map(work, callers)) for task_id in done]


def drained(seed: Seed, root: Path) -> float:
    """Tasks claimed and completed a second, by all agents of a fresh copy at once in this process."""
    with running(seed.copy(root), seed.tokens) as project:
        started = time.perf_counter()
        done = project.run(drain(project.workbench, project.callers))
        seconds = time.perf_counter() - started
        project.run(check(project.workbench, done))
    return len(done) / seconds


async def check(workbench: Workbench, done: Sequence[int]) -> None:
    """Nothing was lost, and nothing was done twice."""
    row = await workbench.store.read(lambda tx: tx.one(SQL.standing))
    assert row is not None
    figures = {*dict(row).values(), len(done), len(set(done))}
    if len(figures) != 1:
        raise AssertionError(f"lost or doubled: {dict(row)}, {len(done)} acknowledged, {len(set(done))} distinct")


def fill(tx: Tx, tasks: int, mixed: bool = False) -> None:
    """Add tasks with a few statements."""
    tx.run(SQL.add_tasks, count=tasks, now=tx.now)
    tx.run(SQL.add_states, mixed=mixed)
    tx.run(SQL.add_blockers)


def unclaim(tx: Tx) -> None:
    """Put every claimed task back, as if it had never been claimed."""
    tx.run(SQL.unclaim)
    tx.run(SQL.forget_attempts)


def in_session(seed: Seed) -> Seed:
    """The same, its agents in one session."""

    async def move() -> None:
        async with opened(seed.root) as workbench:
            project = await workbench.call("create_project", name="bench")
            await workbench.call("create_session", project_id=project["id"], name=SESSION)
            agents = (await workbench.call("list_agents", limit=500))["agents"]
            ids = [agent["agent_id"] for agent in agents]
            await workbench.call("assign_agents", agent_ids=ids, changes={"session_id": SESSION})

    asyncio.run(move())
    return seed


async def _admit(workbench: Workbench, name: str) -> str:
    registration = await workbench.call("register", name=name, persona_id="implementer")
    await workbench.call("approve", approval_id=registration["approval_id"], choices={"agent_id": name})
    return str(registration["token"])
