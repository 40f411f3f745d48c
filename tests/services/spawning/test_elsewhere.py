"""Machines without a clone of the project: a token that enlists workers, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import given
from tests.conftest import Served, git
from workbench.client import HttpClient
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

RECORDED = Query("recorded", "SELECT data FROM events UNION ALL SELECT payload FROM approvals")


async def test_a_machines_token_enlists_workers_and_does_nothing_else(served: Served, repository: Path) -> None:
    workbench, url = served.workbench, served.info.url
    token = (await workbench.call("add_machine", name="gpu"))["token"]
    await given.refuses("MACHINE_NAME_TAKEN", workbench.call("add_machine", name="gpu"))
    async with HttpClient(url, token) as machine:
        await given.refuses("TOKEN_REQUIRED", machine.call("list_tasks"))
        await given.refuses("TOKEN_REQUIRED", machine.call("offer_worktree_bundle"))
        made = await machine.call("enlist_elsewhere", persona_id="planner", name="far")
        async with HttpClient(url, made["token"]) as worker:
            me = await worker.call("whoami")
            assert (me["agent_id"], me["level"], me["worktree"]) == (made["agent_id"], "worker", made["worktree"])
            offer = await worker.call("offer_worktree_bundle")
            assert offer["commit"] == git("rev-parse", offer["branch_name"], cwd=repository)
            assert (await workbench.call("remove_machine", name="gpu"))["revoked"] == [made["agent_id"]]
            await given.refuses("INVALID_TOKEN", worker.call("whoami"))
        await given.refuses("INVALID_TOKEN", machine.call("enlist_elsewhere"))
    async with HttpClient(url) as stranger:
        await given.refuses("MACHINE_TOKEN_REQUIRED", stranger.call("enlist_elsewhere"))
    told = str(await workbench.store.read(lambda tx: tx.all(RECORDED)))
    assert made["agent_id"] in told
    assert token not in told
    assert made["token"] not in told


@pytest.mark.long
async def test_a_machine_enlists_no_more_workers_than_it_may(
    served: Served, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(served.workbench.settings.__dict__, "max_workers_of_machine", 1)
    token = (await served.workbench.call("add_machine", name="gpu"))["token"]
    async with HttpClient(served.info.url, token) as machine:
        first = await machine.call("enlist_elsewhere")
        await given.refuses("TOO_MANY_WORKERS", machine.call("enlist_elsewhere"))
        (shown,) = (await served.workbench.call("list_machines"))["machines"]
        assert (shown["name"], shown["workers"], shown["used_at"] is not None) == ("gpu", 1, True)
        await served.workbench.call("revoke_agent", agent_id=first["agent_id"])
        assert (await machine.call("enlist_elsewhere"))["worktree"] != first["worktree"]
