"""Tokens of processes and of commands open nothing once the process or the attempt has ended."""

from __future__ import annotations

import json
import os
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted, Clock, Served
from tests.services.processes.running import over, spawn
from workbench.app import Workbench
from workbench.errors import Unauthenticated
from workbench.services.tasks import expiry
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


@dataclass
class Command:
    """The command of an attempt that an agent supervises."""

    workbench: Workbench
    agent: Admitted
    claim: dict[str, Any]
    key: str
    token: str
    clock: Clock

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call an operation as the command."""
        return await self.workbench.dispatch(await self.workbench.identify(self.token), name, arguments)

    async def finish(self, outcome: str) -> None:
        """End the attempt as its supervisor."""
        which = {"attempt": self.claim["attempt"], "key": self.key, "outcome": outcome}
        await given.done_by(self.workbench, self.agent, "finish_attempt", self.claim["id"], **which)

    async def expire(self) -> None:
        """Let the lease end."""
        self.clock.forward(self.workbench.settings.lease_seconds + 1)
        await self.workbench.store.write(lambda tx: expiry.expire(tx, self.workbench.settings, lambda: 0.0))


@pytest.fixture
async def workbench(migrated: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    async with Workbench.open(migrated, clock=clock) as opened:
        yield opened


@pytest.fixture
async def command(workbench: Workbench, admit: Admit, clock: Clock) -> Command:
    ada = await admit("ada")
    await given.task(workbench)
    claim = (await workbench.dispatch(ada.caller, "claim_task", {}))["task"]
    key = secrets.token_urlsafe(32)
    which = {"attempt": claim["attempt"], "key": key, "with_token": True}
    begun = await given.done_by(workbench, ada, "begin_attempt", claim["id"], **which)
    return Command(workbench, ada, claim, key, begun["token"], clock)


async def is_over(workbench: Workbench, token: str, why: str = "unknown or was revoked. Register again") -> bool:
    """Whether a token opens nothing, for a reason that is said."""
    with pytest.raises(Unauthenticated, match=why):
        await workbench.identify(token)
    return True


async def test_a_command_calls_as_its_agent_while_its_attempt_runs(command: Command) -> None:
    assert (await command.call("whoami"))["agent_id"] == "ada"
    await command.call("report_task_progress", task_id=command.claim["id"], progress_note="half", attempt=1)
    caller = await command.workbench.identify(command.token)
    assert caller.attempt == (command.claim["id"], 1)
    await command.workbench.call("update_agent", agent_id="ada", changes={"tool": "read"})
    assert (await command.workbench.renewed(caller)).level < caller.level


ENDS: dict[str, Callable[[Command], Awaitable[Any]]] = {
    "completed": lambda one: one.finish("completed"),
    "failed": lambda one: one.finish("failed"),
    "released": lambda one: one.finish("released"),
    "cancelled": lambda one: one.workbench.call("cancel_task", task_id=one.claim["id"]),
    "left without a heartbeat": lambda one: one.expire(),
    "revoked": lambda one: one.workbench.call("revoke_agent", agent_id="ada"),
    "deleted": lambda one: one.workbench.call("delete_agent", agent_id="ada"),
}


@pytest.mark.parametrize("end", ENDS)
async def test_the_token_of_a_command_ends_with_its_attempt(command: Command, end: str) -> None:
    caller = await command.workbench.identify(command.token)
    with command.workbench.revocations.awaited(caller) as told:
        await ENDS[end](command)
        await given.until(told.done)
    why = f"Attempt 1 of task {command.claim['id']} has ended, and its token with it"
    assert await is_over(command.workbench, command.token, why)
    with pytest.raises(Unauthenticated):
        await command.workbench.renewed(caller)


async def test_a_supervisor_that_asks_again_gets_another_token(command: Command) -> None:
    which = {"attempt": 1, "key": command.key, "with_token": True}
    begun = await given.done_by(command.workbench, command.agent, "begin_attempt", command.claim["id"], **which)
    assert await is_over(command.workbench, command.token)
    assert (await command.workbench.identify(begun["token"])).name == "ada"


@pytest.mark.long
@pytest.mark.parametrize("end", ["terminate", "kill", "discard"])
async def test_the_token_of_a_process_ends_with_it(served: Served, end: str) -> None:
    agent = await spawn(served, new_worktree=True, name="ada")
    token = json.loads(Path(f"/proc/{agent['pid']}/fd/0").read_text())["token"]
    assert (await served.workbench.identify(token)).name == "ada"
    match end:
        case "terminate":
            await served.workbench.call("terminate_agent", agent_id="ada")
        case "kill":
            os.kill(agent["pid"], signal.SIGKILL)
            await over(served, "ada")
        case "discard":
            await served.workbench.call("discard_worktree", worktree_name=agent["worktree"], force=True)
    assert await is_over(served.workbench, token)
