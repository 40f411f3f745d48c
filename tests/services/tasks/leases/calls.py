"""Calls about tasks, as agents make them."""

from __future__ import annotations

from typing import Any

from tests.conftest import Admitted
from workbench.app import Workbench
from workbench.services.tasks import expiry

HOLDING = ("start_task", "report_task_progress", "complete_task", "fail_task", "release_task")


async def do(workbench: Workbench, agent: Admitted, name: str, task_id: int, **more: Any) -> dict[str, Any]:
    """Call an operation about a task as an agent."""
    if name == "fail_task":
        more = {"error_message": "no", **more}
    return await workbench.dispatch(agent.caller, name, {"task_id": task_id, **more})


async def claim(workbench: Workbench, agent: Admitted, **which: int) -> Any:
    """Claim a task; the task or None."""
    return (await workbench.dispatch(agent.caller, "claim_task", which))["task"]


async def beat(workbench: Workbench, agent: Admitted, **more: Any) -> dict[str, Any]:
    """A heartbeat."""
    return await workbench.dispatch(agent.caller, "heartbeat_and_get_tasks", more)


async def sweep(workbench: Workbench) -> int:
    """End the leases and pauses that are over by the clock."""
    return await workbench.store.write(lambda tx: expiry.expire(tx, workbench.settings, lambda: 0.0))


async def enter(workbench: Workbench, name: str, persona_id: str = "implementer") -> Admitted:
    """Register and admit an agent."""
    made = await workbench.call("register", name=name, persona_id=persona_id)
    await workbench.call("approve", approval_id=made["approval_id"])
    return Admitted(name, made["token"], await workbench.identify(made["token"]))


async def kinds(workbench: Workbench) -> list[str]:
    """The kinds of the events about tasks so far."""
    return [e["kind"] for e in (await workbench.call("list_events", kinds=["task.*"], limit=1000))["events"]]
