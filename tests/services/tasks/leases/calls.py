"""Calls about tasks, as agents make them."""

from __future__ import annotations

from typing import Any

from tests import given
from tests.conftest import Admitted
from workbench.app import Workbench
from workbench.services.tasks import expiry

HOLDING = ("start_task", "report_task_progress", "complete_task", "fail_task", "release_task")


async def do(workbench: Workbench, agent: Admitted, name: str, task_id: int, **more: Any) -> dict[str, Any]:
    """Call an operation about a task as an agent."""
    no = {"error_message": "no"} if name == "fail_task" else {}
    return await given.done_by(workbench, agent, name, task_id, **no | more)


async def beat(workbench: Workbench, agent: Admitted, **more: Any) -> dict[str, Any]:
    """A heartbeat."""
    return await workbench.dispatch(agent.caller, "heartbeat_and_get_tasks", more)


async def sweep(workbench: Workbench) -> int:
    """End the leases and pauses that are over by the clock."""
    return await workbench.store.write(lambda tx: expiry.expire(tx, workbench.settings, lambda: 0.0))


async def enter(workbench: Workbench, name: str, persona_id: str | None = "implementer") -> Admitted:
    """Register and admit an agent."""
    registration = await workbench.call("register", name=name, persona_id=persona_id)
    await workbench.call("approve", approval_id=registration["approval_id"])
    return Admitted(name, registration["token"], await workbench.identify(registration["token"]))


async def kinds(workbench: Workbench) -> list[str]:
    """The kinds of the events about tasks so far."""
    return await given.kinds(workbench, "task.*")
