"""Several processes, each with its own Workbench on one file, take tasks from one pile at the same time.

Run as a program, this file is one of them: some agents that claim tasks, and perhaps complete them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chance import SOAK
from workbench.app import Workbench
from workbench.errors import Conflict
from workbench.ops import Caller
from workbench.state.settings import Settings
from workbench.store.queries import Query

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CHAOS = [pytest.mark.chaos, pytest.mark.timeout(3_000 if SOAK else 900)]

ATTEMPTS = Query(
    "attempts",
    "SELECT x.task_id, x.attempt, a.assigned_agent_id AS agent, x.outcome "
    "FROM task_attempts x JOIN agents a ON a.id = x.agent_id",
)
EVENTS = Query("events", "SELECT kind, subject, actor FROM events WHERE kind IN ('task.claimed', 'task.completed')")
MORE_ROUNDS = 4
"""On a busy machine, one process may have taken everything before the other gets its turn."""


# One of the processes.


async def take_part(project: Path, how: str, tokens: list[str], task_ids: list[int]) -> None:
    """Do as told for each agent at once; say when ready, begin when told to, and print who got what."""
    async with Workbench.open(Settings(project=project)) as workbench:
        callers = [await workbench.identify(token) for token in tokens]
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        left = iter(task_ids)
        work = claim_by_name if how == "claim" else claim_and_complete
        took = await asyncio.gather(*(work(workbench, caller, left) for caller in callers))
        print(json.dumps({caller.name: mine for caller, mine in zip(callers, took, strict=True)}), flush=True)


async def claim_by_name(workbench: Workbench, caller: Caller, left: Iterator[int]) -> list[int]:
    """Try for every task, in the same order as the other processes; the ones that were had."""
    mine = []
    for task_id in left:
        try:
            await workbench.dispatch(caller, "claim_task", {"task_id": task_id})
        except Conflict as error:
            if error.code != "TASK_NOT_CLAIMABLE":
                raise
        else:
            mine.append(task_id)
    return mine


async def claim_and_complete(workbench: Workbench, caller: Caller, _: Iterator[int]) -> list[int]:
    """Claim the best task and complete it, until there is none."""
    mine = []
    while (task := (await workbench.dispatch(caller, "claim_task", {}))["task"]) is not None:
        mine.append(task["id"])
        done = {"task_id": task["id"], "attempt": task["attempt"], "result_data": {"by": caller.name}}
        await workbench.dispatch(caller, "complete_task", done)
    return mine


# The tests.


async def pile(workbench: Workbench, size: int) -> list[int]:
    """Create tasks; their ids."""
    new = [workbench.call("create_task", title=f"Task {n}", persona_id="implementer") for n in range(size)]
    return [task["id"] for task in await asyncio.gather(*new)]


async def run(child: Any, workbench: Workbench, how: str, teams: list[list[str]], ids: list[int]) -> list[Any]:
    """Have one process for each team of tokens work at the same time; who got what in each."""
    told = [json.dumps(tokens) for tokens in teams]
    processes = [child(__file__, workbench.settings.project, how, tokens, json.dumps(ids)) for tokens in told]
    for process in processes:
        assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
    return [json.loads(await asyncio.to_thread(process.stdout.readline)) for process in processes]


def competed(took: list[dict[str, list[int]]]) -> bool:
    """Whether each process took something."""
    return all(any(process.values()) for process in took)


async def check(workbench: Workbench, took: list[dict[str, list[int]]], ids: list[int], outcome: str | None) -> None:
    """Every task was taken once, by whoever says so, and the store tells the same story."""
    by_task = [(task_id, agent) for process in took for agent, mine in process.items() for task_id in mine]
    assert sorted(task_id for task_id, _ in by_task) == ids
    attempts, events = await workbench.store.read(lambda tx: (tx.all(ATTEMPTS), tx.all(EVENTS)))
    assert sorted((row["task_id"], row["agent"]) for row in attempts) == sorted(by_task)
    assert {(row["attempt"], row["outcome"]) for row in attempts} == {(1, outcome)}
    told = Counter((event["kind"], event["subject"], event["actor"]) for event in events)
    kinds = ["task.claimed"] + (["task.completed"] if outcome else [])
    assert told == {(kind, f"task:{task_id}", agent): 1 for kind in kinds for task_id, agent in by_task}


@pytest.mark.parametrize(
    ("size", "agents", "rounds"),
    [pytest.param(200, 2, 1, id="short"), pytest.param(1_000 * (1 + SOAK), 8, 1 + 3 * SOAK, id="long", marks=CHAOS)],
)
async def test_two_processes_that_claim_at_once_never_get_the_same_task(
    child: Any, workbench: Workbench, admit: Any, size: int, agents: int, rounds: int
) -> None:
    took: list[dict[str, list[int]]] = []
    ids: list[int] = []
    for round_ in range(rounds + MORE_ROUNDS):
        names = [[f"r{round_}-p{process}-a{agent}" for agent in range(agents)] for process in range(2)]
        teams = [[(await admit(name)).token for name in team] for team in names]
        new = await pile(workbench, size)
        ids += new
        now = await run(child, workbench, "claim", teams, new)
        took += now
        if round_ + 1 >= rounds and competed(now):
            break
    assert competed(now)
    await check(workbench, took, ids, None)


@pytest.mark.parametrize(
    ("size", "processes", "agents"),
    [
        pytest.param(200, 2, 4, id="short"),
        pytest.param(20_000 * SOAK or 1_500, 8, 8, id="long", marks=CHAOS),
    ],
)
async def test_agents_of_several_processes_complete_every_task_once(
    child: Any, workbench: Workbench, admit: Any, size: int, processes: int, agents: int
) -> None:
    names = [[f"p{process}-a{agent}" for agent in range(agents)] for process in range(processes)]
    teams = [[(await admit(name)).token for name in team] for team in names]
    ids = await pile(workbench, size)
    took = await run(child, workbench, "complete", teams, ids)
    assert competed(took)
    await check(workbench, took, ids, "completed")
    assert (await workbench.call("get_task_tree"))["counts"] == {"completed": size}


if __name__ == "__main__":
    project, how, tokens, ids = sys.argv[1:]
    asyncio.run(take_part(Path(project), how, json.loads(tokens), json.loads(ids)))
