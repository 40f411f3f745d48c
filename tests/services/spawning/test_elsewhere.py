"""Machines without a clone of the project: a token that enlists workers, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Served, git
from workbench.client import HttpClient
from workbench.errors import WorkbenchError
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

KEY = "k" * 43
RECORDED = Query("recorded", "SELECT data FROM events UNION ALL SELECT payload FROM approvals")


async def test_a_machines_token_enlists_workers_and_does_nothing_else(served: Served, repository: Path) -> None:
    workbench, url = served.workbench, served.info.url
    token = (await workbench.call("add_machine", name="gpu"))["token"]
    await given.refuses("MACHINE_NAME_TAKEN", workbench.call("add_machine", name="gpu"))
    async with HttpClient(url, token) as machine:
        await given.refuses("TOKEN_REQUIRED", machine.call("list_tasks"))
        await given.refuses("TOKEN_REQUIRED", machine.call("offer_worktree_bundle"))
        made = await machine.call("enlist_elsewhere", key=KEY, persona_id="planner", name="far")
        async with HttpClient(url, made["token"]) as worker:
            me = await worker.call("whoami")
            assert (me["agent_id"], me["level"], me["worktree"]) == (made["agent_id"], "worker", made["worktree"])
            shown = await workbench.call("get_agent", agent_id=made["agent_id"])
            assert (shown["machine"], shown["worktree"]) == ("gpu", made["worktree"])
            offer = await worker.call("offer_worktree_bundle")
            assert offer["commit"] == git("rev-parse", offer["branch_name"], cwd=repository)
            assert (await workbench.call("remove_machine", name="gpu"))["revoked"] == [made["agent_id"]]
            await given.refuses("INVALID_TOKEN", worker.call("whoami"))
        await given.refuses("INVALID_TOKEN", machine.call("enlist_elsewhere", key=KEY, persona_id="planner"))
    async with HttpClient(url) as stranger:
        await given.refuses("MACHINE_TOKEN_REQUIRED", stranger.call("enlist_elsewhere", key=KEY, persona_id="planner"))
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
        first = await machine.call("enlist_elsewhere", key=KEY, persona_id="planner")
        await given.refuses(
            "TOO_MANY_WORKERS", machine.call("enlist_elsewhere", key="other" + KEY, persona_id="planner")
        )
        (shown,) = (await served.workbench.call("list_machines"))["machines"]
        assert (shown["name"], shown["workers"], shown["used_at"] is not None) == ("gpu", 1, True)
        await served.workbench.call("revoke_agent", agent_id=first["agent_id"])
        again = await machine.call("enlist_elsewhere", key=KEY, persona_id="planner")  # that worker may act no more
        assert again["worktree"] != first["worktree"]


async def test_a_repeated_request_enlists_no_second_worker(served: Served, repository: Path) -> None:
    workbench, url = served.workbench, served.info.url
    token = (await workbench.call("add_machine", name="gpu"))["token"]
    facts = {"cores": 64, "memory_bytes": 512_000_000_000, "devices": ["A100"], "namespaces": False, "git": ""}
    async with HttpClient(url, token) as machine:
        error = await given.refuses("INVALID_ARGUMENTS", machine.call("enlist_elsewhere", key=KEY, facts={"x": 1}))
        assert error.details["problems"][0]["field"] == "facts.x"
        await given.refuses(
            "PROFILE_NOT_FOUND", machine.call("enlist_elsewhere", key=KEY, persona_id="planner", profile="none")
        )
        request = {"key": KEY, "persona_id": "planner", "facts": facts}
        answers = await asyncio.gather(*(machine.call("enlist_elsewhere", **request) for _ in range(3)))
    assert (await workbench.call("list_approvals"))["approvals"] == []
    assert len({(answer["agent_id"], answer["worktree"]) for answer in answers}) == 1
    states = [await state_of(url, answer["token"]) for answer in answers]
    assert sorted(states) == ["INVALID_TOKEN", "INVALID_TOKEN", "worker"]  # the last token is the only one
    (shown,) = (await workbench.call("list_machines"))["machines"]
    assert (shown["workers"], shown["has"], shown["lacks"]) == (1, "64 cores, 512.0 GB, A100", "namespaces, git")


async def state_of(url: str, token: str) -> str:
    """The level of the worker with a token, or the code of the error."""
    async with HttpClient(url, token) as worker:
        try:
            return str((await worker.call("whoami"))["level"])
        except WorkbenchError as error:
            return error.code


async def test_a_worker_elsewhere_is_told_how_it_works(served: Served, repository: Path, admit: Any) -> None:
    workbench, url = served.workbench, served.info.url
    token = (await workbench.call("add_machine", name="gpu"))["token"]
    async with HttpClient(url, token) as machine:
        made = await machine.call("enlist_elsewhere", key=KEY, persona_id="planner")
    async with HttpClient(url, made["token"]) as worker:
        terms = await worker.call("worker_terms")
    assert (terms["worktree"], terms["branch_name"], terms["target"]) == ("gpu", "wb/gpu/main", "main")
    assert (terms["profile"]["name"], terms["models"]) == ("script", [])
    assert terms["settings"]["heartbeat_seconds"] == workbench.settings.heartbeat_seconds
    assert terms["settings"]["worker_patience_seconds"] == workbench.settings.elsewhere_patience_seconds
    eve = await admit("eve")
    async with HttpClient(url, eve.token) as local:
        await given.refuses("FORBIDDEN", local.call("worker_terms"))
