"""Worker processes that are killed or stopped in the middle of their work: nothing is lost, nothing is done twice.

Run as a program, this file is such a process: some agents, with a Workbench of their own on the common store.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest

from tests import given
from tests.chance import SOAK, chance
from tests.conftest import Served
from tests.postgres import NewServer, PostgresServer
from workbench.app import Workbench
from workbench.errors import Conflict, Unavailable
from workbench.model import SECOND
from workbench.ops import Caller
from workbench.state.database_url import VARIABLE
from workbench.state.settings import Settings
from workbench.store.queries import Query

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.usefixtures("database")]

T = TypeVar("T")

PROCESSES = 4
AGENTS = 4
"""Agents of one process."""
LEASE_SECONDS = 2.0
WORK_SECONDS = 0.8
"""A task takes up to this long."""

ATTEMPTS = Query(
    "attempts",
    "SELECT x.task_id, x.attempt, a.assigned_agent_id AS agent, x.outcome, x.claimed_at, x.ended_at "
    "FROM task_attempts x JOIN agents a ON a.id = x.agent_id ORDER BY x.task_id, x.attempt",
)
STATES = Query("states", "SELECT task_id, status, attempt, unmet FROM task_status")
EDGES = Query("edges", "SELECT task_id, depends_on FROM task_dependencies")
ENDED = Query("ended", "SELECT subject, actor FROM events WHERE kind = 'task.completed'")
SOUND = Query("sound", "{{sqlite}}PRAGMA integrity_check{{end}}{{postgres}}SELECT 'ok' AS sound{{end}}")

Done = tuple[int, int, str]
"""A task that somebody was told to have completed: its id, the attempt, and who."""


def settings(project: Path) -> Settings:
    """Short leases, and no pause before another attempt."""
    return Settings(project=project, lease_seconds=LEASE_SECONDS, retry_base_seconds=0)


# One of the processes.


async def take_part(project: Path, tokens: list[str]) -> None:
    """Work until nothing is open; a line for each task that was acknowledged, and for the beginning and the end."""
    async with AsyncExitStack() as stack:
        workbench = await told(lambda: stack.enter_async_context(Workbench.open(settings(project))))
        callers = [await told(partial(workbench.identify, token)) for token in tokens]
        print("ready", flush=True)
        await asyncio.gather(*(work(workbench, caller) for caller in callers))
    print("end", flush=True)


async def work(workbench: Workbench, caller: Caller) -> None:
    """Claim, take some time, complete; until nothing is open."""
    random = Random(caller.name)
    while True:
        task = (await told(lambda: workbench.dispatch(caller, "claim_task", {})))["task"]
        if task is None:
            if not await told(lambda: something_open(workbench)):
                return
            await told(lambda: workbench.dispatch(caller, "heartbeat_and_get_tasks", {"wait_seconds": 1}))
            continue
        await asyncio.sleep(random.random() * WORK_SECONDS)
        done = {"task_id": task["id"], "attempt": task["attempt"]}
        try:
            await told(partial(workbench.dispatch, caller, "complete_task", done))
        except Conflict as error:
            if error.code != "LEASE_LOST":
                raise
        else:
            print(json.dumps([task["id"], task["attempt"], caller.name]), flush=True)


async def told(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, once the store can be reached: nothing was changed until then."""
    while True:
        try:
            return await ask()
        except Unavailable as error:
            if error.code != "STORE_UNAVAILABLE":
                raise
            await asyncio.sleep(0.05)


async def something_open(workbench: Workbench) -> bool:
    """Whether any task has not ended yet."""
    pages = [
        await workbench.call("list_tasks", status=status, limit=1) for status in ("pending", "claimed", "in_progress")
    ]
    return any(page["tasks"] for page in pages)


# Those who kill them.


class Crew:
    """The processes, and what they say.

    Args:
        database: the server of their store, which is killed, too, and started again.
    """

    def __init__(self, child: Any, project: Path, tokens: list[str], database: PostgresServer | None = None) -> None:
        self._child = child
        self._database = database
        self._project = project
        self._tokens = tokens
        self._heard: queue.SimpleQueue[tuple[subprocess.Popen[str], str]] = queue.SimpleQueue()
        self._living: list[subprocess.Popen[str]] = []
        self._ready: list[subprocess.Popen[str]] = []
        for _ in range(PROCESSES):
            self._start()

    def _start(self) -> None:
        """Start a process with agents that nobody was before."""
        mine, self._tokens = self._tokens[:AGENTS], self._tokens[AGENTS:]
        process = self._child(__file__, self._project, json.dumps(mine))
        self._living.append(process)
        threading.Thread(target=self._listen, args=[process], daemon=True).start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):  # else it was killed in the middle of it
                self._heard.put((process, line.strip()))

    def work(self, kills: list[int], random: Random) -> list[Done]:
        """Have all tasks done, and a process that has begun killed whenever so many are; what was acknowledged."""
        done: list[Done] = []
        ended = 0
        while ended < len(self._living):
            process, line = self._heard.get(timeout=60)
            if line == "ready":
                self._ready.append(process)
            elif line == "end":
                ended += 1
            else:
                done.append(tuple(json.loads(line)))
            if kills and len(done) >= kills[0] and self._ready:
                kills.pop(0)
                if self._database is not None and len(kills) % 3:
                    self._database.kill()
                    time.sleep(random.random())
                    self._database.start()
                else:
                    self._kill(self._ready.pop(random.randrange(len(self._ready))))
                    self._start()
        assert not kills
        assert [process.wait() for process in self._living] == [0] * PROCESSES
        return done

    def _kill(self, victim: subprocess.Popen[str]) -> None:
        self._living.remove(victim)
        victim.kill()
        assert victim.wait() == -signal.SIGKILL


async def prepare(project: Path, tasks: int, agents: int) -> list[str]:
    """Admit agents and make tasks, each of which waits for one before it; the agents' tokens."""
    tokens = []
    async with Workbench.open(settings(project)) as workbench:
        for number in range(agents):
            registration = await workbench.call("register", name=f"agent-{number}", persona_id="implementer")
            await workbench.call("approve", approval_id=registration["approval_id"])
            tokens.append(registration["token"])
        new = [
            {"title": f"Task {n}", "persona_id": "implementer", "max_retries": 100}
            | ({"dependencies": [20 - n]} if n > 20 else {})
            for n in range(1, tasks + 1)
        ]
        await workbench.call("create_tasks", tasks=new)
    return tokens


async def check(project: Path, acknowledged: list[Done], tasks: int) -> list[int]:
    """Nothing is lost, done twice or done too early; how much too late each lease came back, in microseconds."""
    async with Workbench.open(settings(project)) as workbench:
        attempts, states, edges, events, sound = await workbench.store.read(
            lambda tx: [tx.all(query) for query in (ATTEMPTS, STATES, EDGES, ENDED, SOUND)]
        )
    assert [list(row.values()) for row in sound] == [["ok"]]
    assert {(row["status"], row["unmet"]) for row in states} == {("completed", 0)}
    completed = {row["task_id"]: row for row in attempts if row["outcome"] == "completed"}
    assert sorted(row["task_id"] for row in attempts if row["outcome"] == "completed") == list(range(1, tasks + 1))
    assert {row["outcome"] for row in attempts} <= {"completed", "expired"}
    assert Counter(row["task_id"] for row in attempts) == {row["task_id"]: row["attempt"] for row in states}
    who = {task: (row["attempt"], row["agent"]) for task, row in completed.items()}
    assert len({task for task, _, _ in acknowledged}) == len(acknowledged)
    assert [done for done in acknowledged if who[done[0]] != done[1:]] == []
    told = Counter((row["subject"], row["actor"]) for row in events)
    assert told == {(f"task:{task}", agent): 1 for task, (_, agent) in who.items()}
    claims = [(row["task_id"], row["claimed_at"]) for row in attempts]
    first = dict(edges)
    assert [task for task, at in claims if task in first and at < completed[first[task]]["ended_at"]] == []
    lease = int(LEASE_SECONDS * SECOND)
    return [row["ended_at"] - row["claimed_at"] - lease for row in attempts if row["outcome"] == "expired"]


@pytest.mark.chaos
@pytest.mark.timeout(3_000 if SOAK else 900)
async def test_processes_that_are_killed_lose_no_task_and_finish_none_twice(child: Any, repository: Path) -> None:
    tasks, kills = 2_000 * SOAK or 160, 50 * SOAK or 4
    random = chance()
    tokens = await prepare(repository, tasks, (PROCESSES + kills) * AGENTS)
    moments = sorted(random.sample(range(1, tasks * 3 // 4), kills))
    done = await asyncio.to_thread(Crew(child, repository, tokens).work, moments, random)
    late = await check(repository, done, tasks)
    assert late
    assert min(late) >= 0
    assert max(late) <= SECOND or not SOAK  # the soak runs alone


@pytest.mark.chaos
@pytest.mark.postgres
@pytest.mark.timeout(3_000 if SOAK else 900)
async def test_a_database_that_is_killed_under_load_loses_no_task_and_lets_none_be_done_twice(
    child: Any, repository: Path, new_postgres_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, kills = 2_000 * SOAK or 160, 100 * SOAK or 10
    random, server = chance(), new_postgres_server()
    with server.new_database() as name:
        monkeypatch.setenv(VARIABLE, server.url(name))
        tokens = await prepare(repository, tasks, (PROCESSES + kills) * AGENTS)
        moments = sorted(random.sample(range(1, tasks * 3 // 4), kills))
        done = await asyncio.to_thread(Crew(child, repository, tokens, server).work, moments, random)
        await check(repository, done, tasks)


# A worker that hangs instead of dying


async def beat(served: Served, caller: Caller) -> None:
    """Renew an agent's leases until cancelled."""
    while True:
        await served.workbench.dispatch(caller, "heartbeat", {})
        await asyncio.sleep(0.1)


@pytest.mark.timeout(120)
async def test_a_worker_that_is_stopped_loses_its_lease_and_its_late_result_is_refused(
    served: Served, admit: Any
) -> None:
    workbench = served.workbench
    lab = await given.worktree(workbench)
    spawn = {"persona_id": "implementer", "name": "walt", "assigned_worktree": "lab"}
    walt = await workbench.call("spawn_agent", **spawn)
    task = await given.task(workbench, run="while [ ! -e go ]; do sleep 0.05; done", lease_seconds=5)
    await given.reached(workbench, task, "in_progress")
    bob = await admit("bob")
    async with workbench.feed.subscribe("task.expired", "task.retry_ready") as events:
        os.kill(walt["pid"], signal.SIGSTOP)
        assert [(await anext(events)).kind for _ in range(2)] == ["task.expired", "task.retry_ready"]
    again = await given.claim(workbench, bob)
    assert (again["id"], again["attempt"]) == (task, 2)
    (lab / "go").touch()
    os.kill(walt["pid"], signal.SIGCONT)
    other = await given.task(workbench, run="true")
    beating = asyncio.create_task(beat(served, bob.caller))
    ended = await given.reached(workbench, other, "completed", "failed")
    assert ended["attempts"][0]["agent_id"] == "walt"
    beating.cancel()
    await given.done_by(workbench, bob, "complete_task", task, attempt=2, result_data="bob's")
    found = await given.task_now(workbench, task)
    assert (found["status"], found["result_data"]) == ("completed", "bob's")
    assert [(a["agent_id"], a["outcome"]) for a in found["attempts"]] == [("walt", "expired"), ("bob", "completed")]
    log = await workbench.call("get_agent_process_info", agent_id="walt")
    assert f"task {task} is" in Path(log["log"]).read_text()


if __name__ == "__main__":
    asyncio.run(take_part(Path(sys.argv[1]), json.loads(sys.argv[2])))
