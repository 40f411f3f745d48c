"""The instructions of the server: those of the caller's role, about tools that it is offered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import Admit, Served
from tests.shells.mcp.sessions import session
from workbench.model import Level
from workbench.ops import ANONYMOUS, Caller, collect
from workbench.services import SERVICES
from workbench.services.access.authentication import SUPERVISED
from workbench.shells.mcp.guidance import guidance
from workbench.shells.mcp.server import offered

OPERATIONS = collect(SERVICES)
NAMED = re.compile(r"`(\w+)`")


@pytest.mark.anyio
async def test_a_session_begins_with_the_instructions_for_its_caller(served: Served, admit: Admit, era: str) -> None:
    expected = {
        None: guidance(Level.ANONYMOUS),
        (await admit("eve", tool="read")).token: guidance(Level.READ),
        (await admit("ada")).token: guidance(Level.WORKER),
        (await admit("pam", role="planner")).token: guidance(Level.PLANNER),
        served.workbench.operator_token: guidance(Level.OPERATOR),
    }
    assert len(set(expected.values())) == len(expected)
    for token, text in expected.items():
        async with session(served, token, era) as client:
            assert client.instructions == text


@pytest.mark.anyio
async def test_an_agent_under_a_supervisor_is_told_that_its_task_is_claimed(served: Served, tmp_path: Path) -> None:
    worker = await served.workbench.call(
        "enlist_worker", persona_id="implementer", scratch=str(tmp_path), profile="python", function="lab:count"
    )
    agent = await served.workbench.call("get_agent", agent_id=worker["agent_id"])
    assert agent["capabilities"] == {SUPERVISED: True}
    token = (await served.workbench.call("issue_token", agent_id=worker["agent_id"]))["token"]
    async with session(served, token) as client:
        assert client.instructions == guidance(Level.WORKER, supervised=True)
        whoami = (await client.call_tool("whoami", {})).structured_content
    assert whoami is not None
    assert whoami["supervised"] is True


@pytest.mark.parametrize("supervised", [False, True])
@pytest.mark.parametrize("level", [level for level in Level if level is not Level.ANONYMOUS])
def test_the_instructions_name_only_tools_that_the_caller_is_offered(level: Level, supervised: bool) -> None:
    named = {name for name in NAMED.findall(guidance(level, supervised=supervised)) if name in OPERATIONS}
    assert named <= {op.name for op in offered(OPERATIONS.values(), Caller(level, "ada"))}
    assert named


def test_instructions_name_a_strangers_tools_and_explain_waiting_and_lost_leases() -> None:
    named = set(NAMED.findall(guidance(Level.ANONYMOUS)))
    assert named >= {op.name for op in offered(OPERATIONS.values(), ANONYMOUS)}
    for level in (Level.WORKER, Level.PLANNER):
        for what in ("`wait_seconds`", "`LEASE_LOST`", "`workbench approve`"):
            assert what in guidance(level)
