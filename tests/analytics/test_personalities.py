"""Personalities of the KOI network, as SQL sees them."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from pathlib import Path

import pytest

from tests import given
from tests.analytics.conftest import rows
from tests.conftest import Served, git
from tests.services.personalities.known import online
from tests.services.personalities.two_nodes import side
from tests.services.worktrees.lab import ask, commit, finished
from workbench.analytics.live import Live

pytestmark = pytest.mark.anyio


async def test_the_view_follows_published_and_withdrawn_personalities(served: Served) -> None:
    live, workbench = Live(), served.workbench

    query = "SELECT name, version, is_latest, tools, contents->>'$.rid' FROM personalities ORDER BY name"
    known = partial(rows, live, workbench, query)
    async with online(workbench):
        assert await known() == []
        await workbench.call("publish_personality", name="ada", traits={"add": {"is_callable": True}})
        await workbench.call("publish_personality", name="bob")
        ada, bob = await known()
        assert ada == ("ada", "1.0", True, 1, "orn:agent.personality:ada/1.0")
        await workbench.call("publish_personality", name="ada", version="2.0", traits={})
        assert await known() == [("ada", "2.0", True, 0, "orn:agent.personality:ada/2.0"), bob]
        await workbench.call("withdraw_personality", name="ada")
        assert await known() == [bob]


CALLS = """
SELECT c.id, c.tool_name, p.owner, c.version, t.title, c.attempt, c.commit_id
FROM tool_calls c JOIN tasks t ON t.id = c.task_id JOIN personalities p ON p.name = c.server
WHERE c.kind = 'trait'
"""
"""Of each call at another node: the node, the version of its function, the caller's task and the commit of that."""
SQUARE = {"name": "square", "description": "", "parameters": {"type": "object"}, "version": "v7", "trait": "ada"}


@pytest.mark.long
async def test_a_call_at_another_node_is_joined_to_the_task_and_the_merged_commit_in_one_query(
    first_commit: Path, tmp_path: Path
) -> None:
    project = Path(shutil.copytree(first_commit, tmp_path / "there"))
    async with side(tmp_path / "here", "here") as here, side(project, "there", here) as there:
        call = there.workbench.call
        await here.workbench.call("offer_tools", host_id="k", name="kernel", tools=[SQUARE])
        await here.workbench.call("set_peer_permission", peer=there.rid, permission="always")
        await there.knows("ada", "square")
        place = await given.worktree(there.workbench)
        registration = await call("register", name="eve", persona_id="implementer")
        choices = {"agent_id": "eve", "tools": ["network:ada"], "worktree": "lab"}
        await call("approve", approval_id=registration["approval_id"], choices=choices)
        await call("set_tool_permission", name="ada__square", permission="always")
        task = await given.task(there.workbench, "Measure", target_worktree="lab")
        eve = await there.workbench.identify(registration["token"])
        await there.workbench.dispatch(eve, "claim_task", {"task_id": task})
        arguments = {"name": "ada__square", "arguments": {"n": 3}}
        calling = asyncio.create_task(there.workbench.dispatch(eve, "call_tool", arguments))
        [begun] = (await here.workbench.call("take_tool_calls", host_id="k", wait_seconds=30))["calls"]
        await here.workbench.call("finish_tool_call", host_id="k", call_id=begun["call_id"], answer={"value": 9})
        assert (await calling)["result"] == "9"
        commit(place)
        await there.workbench.dispatch(eve, "complete_task", {"task_id": task, "result_data": 9})
        question = await ask(there.workbench)
        await call("approve", approval_id=question)
        await finished(there.workbench, question)

        [row] = await rows(Live(), there.workbench, CALLS)
        merged = git("rev-parse", "main", cwd=project)
        assert row[1:] == ("ada__square", here.rid, "v7", "Measure", 1, merged)
        [received] = (await here.workbench.call("list_tool_calls"))["calls"]
        assert (received["origin_node"], received["origin_call"]) == (there.rid, row[0])
        assert (received["origin_caller"], received["version"]) == ("eve", "v7")
