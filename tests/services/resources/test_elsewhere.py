"""What a worker on a machine without a clone holds is of its own machine, and what a local one holds is of this one."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.analytics.conftest import rows
from tests.conftest import Admit, Admitted, Clock, Served
from tests.services.resources.test_leases import ENDINGS, needing, taken, waits_for
from tests.services.tasks.leases.calls import do
from workbench.analytics.live import Live
from workbench.app import Workbench

pytestmark = [pytest.mark.anyio, pytest.mark.long]


async def enlisted(workbench: Workbench, name: str, token: str, devices: Sequence[str] = ()) -> Admitted:
    """A worker of a machine without a clone, which says what GPUs it lends."""
    named = {"key": secrets.token_urlsafe(32), "persona_id": "implementer", "name": name}
    made = await workbench.dispatch(await workbench.identify(token), "enlist_elsewhere", named)
    worker = Admitted(made["agent_id"], made["token"], await workbench.identify(made["token"]))
    lent = [{"name": "gpu", "device": device, "amount": 1, "vram": 24 << 30} for device in devices]
    stock = [*lent, {"name": "cpu", "amount": 4}]
    terms = await workbench.dispatch(worker.caller, "worker_terms", {"resources": stock})
    assert terms["worktree"] == worker.caller.worktree
    return worker


async def added(workbench: Workbench, name: str) -> str:
    """The token of a new machine."""
    token: str = (await workbench.call("add_machine", name=name))["token"]
    return token


async def held(workbench: Workbench) -> dict[tuple[str, str], str]:
    """Who holds which GPU of which machine."""
    there = (await workbench.call("list_resources"))["resources"]
    return {(row["machine"], row["device"]): row["held_by"] for row in there if row["name"] == "gpu"}


async def look(workbench: Workbench, resources: dict[str, Any]) -> None:
    """Let the server's machine have something else from now on."""
    workbench.settings.__dict__["resources"] = resources
    await workbench.duties["looking for resources"].perform(workbench._ctx)


@pytest.mark.parametrize("how", ["completed", "expired"])
async def test_each_machine_elsewhere_lends_its_own_gpu_although_the_server_has_none(
    served: Served, repository: Path, admit: Admit, clock: Clock, how: str
) -> None:
    workbench = served.workbench
    await look(workbench, {})
    one, two = await added(workbench, "one"), await added(workbench, "two")
    local, plain = await admit("local"), await added(workbench, "plain")
    first, second, third = [await needing(workbench, {"vram": "12G"}, run="true", max_retries=0) for _ in range(3)]
    assert await waits_for(workbench, first) == "a GPU with 12G (none there)"
    ada = await enlisted(workbench, "ada", one, ["gpu0"])
    ben, eve = await enlisted(workbench, "ben", two, ["gpu0"]), await enlisted(workbench, "eve", one, ["gpu0"])
    without = await enlisted(workbench, "without", plain)
    assert await waits_for(workbench, first) is None
    for nobody in (local, without):
        assert await taken(workbench, nobody) is None
    refused = await given.refuses("TASK_NOT_CLAIMABLE", given.claim(workbench, local, first))
    assert refused.message.endswith("it waits for a GPU with 12G (none there).")

    answer = await workbench.dispatch(ada.caller, "claim_task", {})
    leased = {"devices": ["gpu0"], "amounts": {}, "alone": False, "machine": "elsewhere:one"}
    assert (answer["task"]["attempts"][-1]["leased"], answer["variables"]) == (leased, {})
    assert await taken(workbench, eve) is None, "it is of the same machine"
    assert await taken(workbench, ben) == ["gpu0"]
    busy = "on elsewhere:one a GPU with 12G (0 of 1 free), or on elsewhere:two a GPU with 12G (0 of 1 free)"
    assert await waits_for(workbench, third) == busy
    who = {("elsewhere:one", "gpu0"): f"task {first} (ada)", ("elsewhere:two", "gpu0"): f"task {second} (ben)"}
    assert await held(workbench) == who

    await ENDINGS[how](workbench, ada, first, clock)
    again = await given.claim(workbench, eve)
    assert again["attempts"][-1]["leased"] == leased
    assert (await held(workbench))["elsewhere:one", "gpu0"] == f"task {again['id']} (eve)"


async def test_what_is_held_elsewhere_is_not_taken_from_this_machine_nor_the_other_way_round(
    served: Served, repository: Path, admit: Admit
) -> None:
    workbench = served.workbench
    name = (await workbench.call("list_servers"))["machine"]  # both are called the same
    token, ada, ben = await added(workbench, name), await admit("ada"), await admit("ben")
    far = await enlisted(workbench, "far", token, ["gpu0"])
    other = await enlisted(workbench, "other", token, ["gpu0"])
    timing = await needing(workbench, {"gpu": 1, "exclusive": True}, run="true", priority=900)
    await needing(workbench, {"gpu": 1, "cpu": 8}, run="true", priority=800)
    assert await taken(workbench, ada, timing) == ["gpu0"]
    await do(workbench, ada, "release_task", timing)
    assert await taken(workbench, far, timing) == ["gpu0"]
    await look(workbench, workbench.settings.resources)
    assert await taken(workbench, ada) == ["gpu0"], "nothing is begun beside an exclusive task on its own machine only"
    small = await given.task(workbench, run="true")
    assert await given.claim(workbench, other) is None
    assert await waits_for(workbench, small) is None
    assert await held(workbench) == {
        (name, "gpu0"): f"task {timing + 1} (ada)",
        (name, "gpu1"): "",
        (f"elsewhere:{name}", "gpu0"): f"task {timing} (far)",
    }
    query = "SELECT machine, device, held FROM resources WHERE name = 'gpu' ORDER BY 1, 2"
    told = [(name, "gpu0", 1), (name, "gpu1", 0), (f"elsewhere:{name}", "gpu0", 1)]
    assert await rows(Live(), workbench, query) == sorted(told)

    assert (await given.claim(workbench, ben))["id"] == small, "here is another machine"
    await workbench.call("remove_machine", name=name)
    assert [machine for machine, _ in await held(workbench)] == [name, name]
