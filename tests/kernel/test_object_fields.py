"""The fields of the objects of a notebook are those of the operations that read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernel_ext.objects.agents import Agent, Persona, Process
from kernel_ext.objects.approvals import Approval
from kernel_ext.objects.events import Event
from kernel_ext.objects.rows import Row
from kernel_ext.objects.runs import Run
from kernel_ext.objects.sessions import Session
from kernel_ext.objects.tasks import Plan, Task
from kernel_ext.objects.worktrees import Worktree
from workbench.ops import collect
from workbench.services import SERVICES

READ_BY: dict[type[Row], str] = {
    Agent: "get_agent",
    Approval: "get_approval",
    Event: "list_newest_events",
    Persona: "get_persona",
    Plan: "list_plans",
    Process: "get_agent_process_info",
    Run: "get_run",
    Session: "get_session",
    Task: "get_task",
    Worktree: "get_worktree_status",
}


def test_an_object_has_all_fields_of_what_reads_it() -> None:
    operations = collect(SERVICES)
    for row, operation in READ_BY.items():
        schema = _of_one(operations[operation].output_schema, row._KIND.items)
        assert (row, row._fields()) == (row, list(schema["properties"]))


def _of_one(schema: Mapping[str, Any], items: str) -> Mapping[str, Any]:
    """The schema of one object: that of the items of a list, or the whole."""
    if next(iter(schema["properties"])) != items:
        return schema
    found: Mapping[str, Any] = schema["$defs"][schema["properties"][items]["items"]["$ref"].rpartition("/")[2]]
    return found
