"""What tasks need is leased with their claim, and free again when the attempt has ended, however that ends."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests import given
from tests.analytics.conftest import rows
from tests.conftest import Admit, Admitted, Clock
from tests.services.tasks.leases.calls import beat, do, sweep
from workbench.analytics.live import Live
from workbench.app import Workbench
from workbench.confinement import lending
from workbench.errors import WorkbenchError
from workbench.services.resources import leases
from workbench.state.settings_file import settings_path
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio


async def needing(workbench: Workbench, needs: Any, **more: Any) -> int:
    """The id of a new task that needs something."""
    return await given.task(workbench, needs=needs, **more)


async def taken(workbench: Workbench, agent: Admitted, task_id: int | None = None) -> list[str] | None:
    """The devices that an agent gets with the task that it claims; None: it gets no task."""
    task = await given.claim(workbench, agent, task_id)
    return task and task["attempts"][-1]["leased"]["devices"]


async def holders(workbench: Workbench) -> dict[str, str]:
    """Who holds what."""
    there = (await workbench.call("list_resources"))["resources"]
    return {row["device"] or row["name"]: row["held_by"] for row in there if row["held_by"]}


async def waits_for(workbench: Workbench, task_id: int) -> str | None:
    """What a task waits for."""
    return (await given.task_now(workbench, task_id))["waits_for"]


async def test_a_device_has_one_holder_and_the_next_task_says_what_it_waits_for(
    workbench: Workbench, admit: Admit
) -> None:
    ada, ben, eve = await admit("ada"), await admit("ben"), await admit("eve")
    one, two, three = [await needing(workbench, {"gpu": 1}) for _ in range(3)]
    answer = await workbench.dispatch(ada.caller, "claim_task", {})
    assert answer["task"]["attempts"][0]["leased"] == {
        "devices": ["gpu0"],
        "amounts": {},
        "alone": False,
        "machine": None,
    }
    assert answer["variables"]["CUDA_VISIBLE_DEVICES"] == "gpu0"
    assert await taken(workbench, ben) == ["gpu1"]
    assert await taken(workbench, eve) is None
    assert (await beat(workbench, eve))["available"] == []
    assert await waits_for(workbench, three) == "a GPU (0 of 2 free)"
    error = await given.refuses("TASK_NOT_CLAIMABLE", given.claim(workbench, eve, three))
    assert error.message.endswith("it waits for a GPU (0 of 2 free).")
    assert error.details["reasons"] == ["resources"]
    assert await holders(workbench) == {"gpu0": f"task {one} (ada)", "gpu1": f"task {two} (ben)"}
    await do(workbench, ada, "complete_task", one)
    assert await taken(workbench, eve) == ["gpu0"]


Ending = Callable[[Workbench, Admitted, int, Clock], Awaitable[object]]


async def _expire(workbench: Workbench, agent: Admitted, task_id: int, clock: Clock) -> None:
    clock.forward(121)
    await sweep(workbench)


ENDINGS: dict[str, Ending] = {
    "completed": lambda workbench, agent, task, clock: do(workbench, agent, "complete_task", task),
    "failed": lambda workbench, agent, task, clock: do(workbench, agent, "fail_task", task),
    "released": lambda workbench, agent, task, clock: do(workbench, agent, "release_task", task),
    "expired": _expire,
    "cancelled": lambda workbench, agent, task, clock: workbench.call("cancel_task", task_id=task),
    "revoked": lambda workbench, agent, task, clock: workbench.call("revoke_agent", agent_id="ada"),
}


@pytest.mark.parametrize("how", ENDINGS)
async def test_what_an_attempt_held_is_free_when_it_has_ended_however_it_ends(
    workbench: Workbench, admit: Admit, clock: Clock, how: str
) -> None:
    ada, ben = await admit("ada"), await admit("ben")
    needs = {"gpu": 2, "memory": "16G", "license": "matlab", "microscope": 1}
    task = await needing(workbench, needs, max_retries=0)
    assert await taken(workbench, ada) == ["gpu0", "gpu1"]
    await ENDINGS[how](workbench, ada, task, clock)
    assert await holders(workbench) == {}
    await needing(workbench, needs, priority=900)
    assert await taken(workbench, ben) == ["gpu0", "gpu1"]


async def test_two_claims_at_once_for_the_last_device_have_one_winner(workbench: Workbench, admit: Admit) -> None:
    agents = [await admit(f"agent{n}") for n in range(6)]
    for _ in agents:
        await needing(workbench, {"gpu": 1})
    found = await asyncio.gather(*(taken(workbench, agent) for agent in agents))
    assert sorted(devices[0] for devices in found if devices) == ["gpu0", "gpu1"]


async def test_the_store_itself_refuses_a_second_holder_of_a_device(workbench: Workbench, admit: Admit) -> None:
    ada, ben = await admit("ada"), await admit("ben")
    await needing(workbench, {"gpu": 1})
    other = await given.task(workbench)
    (device,) = await taken(workbench, ada) or []
    await given.claim(workbench, ben, other)
    machine = (await workbench.call("list_servers"))["machine"]
    row = {"task_id": other, "attempt": 1, "name": "gpu", "device": device, "amount": 1, "machine": machine}
    with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError, WorkbenchError)):
        await workbench.store.write(lambda tx: tx.many(leases.SQL.add, [row]))


async def test_a_gpu_has_enough_memory_and_no_more_than_is_needed(workbench: Workbench, admit: Admit) -> None:
    ada, ben, eve = await admit("ada"), await admit("ben"), await admit("eve")
    small, large, other = [await needing(workbench, {"vram": size}) for size in ("4G", "12G", "12G")]
    assert await taken(workbench, ada, large) == ["gpu1"]
    assert await taken(workbench, ben, small) == ["gpu0"]
    await do(workbench, ben, "complete_task", small)
    assert await waits_for(workbench, other) == "a GPU with 12G (0 of 2 free)"
    assert await taken(workbench, eve) is None


async def test_amounts_are_summed_and_what_is_left_goes_to_others(workbench: Workbench, admit: Admit) -> None:
    ada, ben, eve = await admit("ada"), await admit("ben"), await admit("eve")
    await needing(workbench, {"cpu": 6, "memory": "12G"})
    much = await needing(workbench, {"cpu": 4, "memory": "8G"})
    little = await needing(workbench, {"cpu": 2})
    assert await taken(workbench, ada) == []
    assert await waits_for(workbench, much) == "4 processors (2 of 8 free) and 8G of memory (4G of 16G free)"
    assert (await given.claim(workbench, ben))["id"] == little
    first, second = [await needing(workbench, "license=matlab") for _ in range(2)]
    assert (await given.claim(workbench, eve))["id"] == first
    assert await waits_for(workbench, second) == "the licence matlab (0 of 1 free)"


async def test_a_task_that_is_alone_starts_when_nothing_runs_and_nothing_begins_beside_it(
    workbench: Workbench, admit: Admit
) -> None:
    ada, ben = await admit("ada"), await admit("ben")
    timing = await needing(workbench, {"exclusive": True}, priority=900)
    small = await given.task(workbench)
    assert (await given.claim(workbench, ada, small))["id"] == small
    assert await waits_for(workbench, timing) == "the machine alone (1 attempt under way)"
    assert await given.claim(workbench, ben) is None
    await do(workbench, ada, "complete_task", small)
    assert (await given.claim(workbench, ben))["id"] == timing
    other = await given.task(workbench)
    assert await given.claim(workbench, ada) is None
    says = f"the end of task {timing}, which is alone on the machine"
    assert await waits_for(workbench, other) == says
    part = await given.task(workbench, parent_task_id=timing)
    assert (await given.claim(workbench, ada))["id"] == part, "what it is made of goes on"
    await do(workbench, ada, "complete_task", part)
    await do(workbench, ben, "complete_task", timing)
    assert (await given.claim(workbench, ada))["id"] == other


async def test_who_waits_for_its_subtask_does_not_keep_that_from_being_alone(
    workbench: Workbench, admit: Admit
) -> None:
    ada, ben = await admit("ada"), await admit("ben")
    whole = await given.task(workbench)
    await given.claim(workbench, ada, whole)
    part = await needing(workbench, "exclusive", parent_task_id=whole)
    assert (await given.claim(workbench, ben))["id"] == part


@pytest.mark.parametrize("big", [{"gpu": 2}, {"exclusive": True}])
async def test_something_big_is_not_overtaken_for_ever(
    workbench: Workbench, admit: Admit, clock: Clock, big: Any
) -> None:
    agents = [await admit("ada"), await admit("ben")]
    small = {"gpu": 1}
    for _ in range(20):
        await needing(workbench, small, priority=900)
    held = {agent.agent_id: (await given.claim(workbench, agent))["id"] for agent in agents}
    wanted = await needing(workbench, big)
    for turn in range(20):  # each in turn ends its task and asks for the next: the other still runs
        clock.forward(60)
        agent = agents[turn % 2]
        for one in agents:
            await beat(workbench, one)
        if agent.agent_id in held:
            await do(workbench, agent, "complete_task", held.pop(agent.agent_id))
        if task := await given.claim(workbench, agent):
            held[agent.agent_id] = task["id"]
        if wanted in held.values():
            break
    else:
        pytest.fail("it never had its turn")
    assert turn * 60 > workbench.settings.resource_patience_seconds, "before that, priorities decide"
    assert list(held.values()) == [wanted]


async def test_nothing_waits_for_a_task_that_nobody_asks_for(workbench: Workbench, admit: Admit, clock: Clock) -> None:
    ada, ben = await admit("ada"), await admit("ben", persona_id="tester")
    await needing(workbench, {"gpu": 1})
    await taken(workbench, ada)
    await needing(workbench, {"gpu": 2}, persona_id="tester")
    assert await given.claim(workbench, ben) is None
    clock.forward(601)
    await beat(workbench, ada)
    await beat(workbench, ben)
    other = await needing(workbench, {"gpu": 1})
    eve = await admit("eve")
    assert await taken(workbench, eve) is None, "ben waits for both"
    clock.forward(61)
    await beat(workbench, ada)
    assert (await given.claim(workbench, eve))["id"] == other, "ben has asked no more"


async def test_what_is_not_there_is_said_when_the_task_is_made_and_waited_for(
    workbench: Workbench, admit: Admit
) -> None:
    ada = await admit("ada")
    made = await given.whole_task(workbench, needs={"gpu": 3, "license": "stata"}, run="true")
    assert made["note"].startswith(f"NEEDS_UNMET: Task {made['id']} waits for what is not there: 3 GPUs (2 of 2 there)")
    assert "the licence stata (0 there)" in made["waits_for"]
    (waiting,) = (await workbench.call("list_resources"))["waiting"]
    assert (waiting["task_id"], waiting["is_there"]) == (made["id"], False)
    settings_path(workbench.settings.project).write_text("[resources]\nlicenses = {stata = 1}\n")
    (stata,) = (one for one in (await workbench.call("list_resources"))["resources"] if one["name"] == "license:stata")
    assert stata["problem"].startswith(
        "there is none, and tasks need it. The project's settings.toml sets resources, but"
    )
    assert await given.claim(workbench, ada) is None
    edited = await workbench.call("edit_task", task_id=made["id"], needs={"gpu": 2})
    assert (edited["needs"], edited["waits_for"], edited["warnings"]) == ({"gpu": 2}, None, [])
    assert await taken(workbench, ada) == ["gpu0", "gpu1"]


async def test_what_shrinks_while_it_is_held_stays_with_its_holder_and_nothing_new_is_begun(
    workbench: Workbench, admit: Admit, devices: list[Path]
) -> None:
    ada, ben = await admit("ada"), await admit("ben")
    task = await needing(workbench, {"vram": "12G"})
    assert await taken(workbench, ada) == ["gpu1"]
    devices[1].unlink()
    look = workbench.duties["looking for resources"].perform
    await look(workbench._ctx)
    assert await holders(workbench) == {"gpu1": f"task {task} (ada)"}
    (row,) = [row for row in (await workbench.call("list_resources"))["resources"] if row["device"] == "gpu1"]
    assert row["problem"] == f"{devices[1]} is not there"
    gone = given.refused("DEVICE_GONE", lending.lent, workbench.settings, {"devices": ["gpu0", "gpu1"]})
    assert gone.message.startswith("The GPU gpu1 is there no more")
    other = await needing(workbench, {"gpu": 2})
    assert await taken(workbench, ben) is None
    await do(workbench, ada, "complete_task", task)
    assert await waits_for(workbench, other) == "2 GPUs (1 of 1 there)"
    devices[1].touch()
    await look(workbench._ctx)
    assert await taken(workbench, ben) == ["gpu0", "gpu1"]


async def test_a_persona_says_what_its_tasks_need_that_do_not_say_it(workbench: Workbench, admit: Admit) -> None:
    text = "---\nneeds: {gpu: 2}\n---\nTrain."
    saved = await workbench.call("save_persona", persona_id="trainer", text=text)
    assert saved["needs"] == {"gpu": 2}
    ada, ben = await admit("ada", persona_id="trainer"), await admit("ben", persona_id="trainer")
    first, second = [await given.task(workbench, "t", "trainer") for _ in range(2)]
    none = await needing(workbench, {}, persona_id="trainer", priority=0)
    assert await taken(workbench, ada, first) == ["gpu0", "gpu1"]
    assert await waits_for(workbench, second) == "2 GPUs (0 of 2 free)"
    assert (await given.claim(workbench, ben))["id"] == none, "it says that it needs nothing"
    error = await given.refuses(
        "PERSONA_INVALID", workbench.call("save_persona", persona_id="trainer", text="---\nneeds: {gpu: 0}\n---\n")
    )
    assert "`needs`: gpu: it must be a whole number from 1 to 64" in error.message


async def test_sql_tells_what_there_is_and_who_holds_and_held_what(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada, live = await admit("ada"), Live()
    first = await needing(workbench, {"gpu": 1, "memory": "1G", "license": "matlab"})
    await taken(workbench, ada, first)
    clock.forward(5)
    await do(workbench, ada, "complete_task", first)
    second = await needing(workbench, {"vram": "12G", "exclusive": True})
    await taken(workbench, ada, second)
    query = "SELECT task_id, agent, name, device, amount, seconds FROM leases ORDER BY task_id, name"
    assert await rows(live, workbench, query) == [
        (first, "ada", "gpu", "gpu0", 1, 5.0),
        (first, "ada", "license:matlab", None, 1, 5.0),
        (first, "ada", "memory", None, 1 << 30, 5.0),
        (second, "ada", "alone", "machine", 1, None),
        (second, "ada", "gpu", "gpu1", 1, None),
    ]
    query = "SELECT device, vram, held FROM resources WHERE name = 'gpu' ORDER BY device"
    assert await rows(live, workbench, query) == [("gpu0", 8 << 30, 0), ("gpu1", 16 << 30, 1)]
    assert await rows(live, workbench, "SELECT needs ->> 'vram' FROM tasks ORDER BY id") == [(None,), ("12G",)]


async def test_leases_of_the_past_cost_nothing(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    for _ in range(30):
        task = await needing(workbench, {"gpu": 1, "cpu": 2})
        assert await taken(workbench, ada, task) == ["gpu0"]
        await do(workbench, ada, "complete_task", task)
    left = await workbench.store.read(lambda tx: tx.all(Query("left", "SELECT COUNT(*) AS n FROM resource_leases")))
    assert left == [{"n": 2}]
