"""An open project with a session, and plans that the tests send."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from workbench.app import Workbench
from workbench.store.queries import Query


@pytest.fixture
async def workbench(workbench: Workbench) -> Workbench:
    """An open project with a session, `night`."""
    await given.project(workbench, "house")
    await given.session(workbench, "night", "house")
    return workbench


TEXT = """
plan: p
tasks:
  - name: last
    title: Last
    persona: Reviewer
    after: [first, middle, first]
  - {name: middle, title: Middle, persona: tester, after: [first], worktree: lab, run: [echo, hi], priority: 7,
     max_retries: 0, lease_seconds: 9, description: text, context_ref: doc, metadata: {a: {b: [1]}}}
  - {name: first, title: First, persona: implementer, worktree: other}
"""

SET_CANCEL = Query("set_cancel", "UPDATE tasks SET on_failure = 'cancel' WHERE name = 'second'")

UNCHANGED: dict[str, object] = {"added": [], "removed": [], "changed": {}, "retried": [], "text": ""}


async def listed(workbench: Workbench, **wanted: str) -> list[dict[str, Any]]:
    """All tasks, by id."""
    tasks: list[dict[str, Any]] = (await workbench.call("list_tasks", limit=500, **wanted))["tasks"]
    return tasks


CHANGED = """
plan: p
tasks:
  - name: first
    title: Foremost
    persona: tester
    description: text
    priority: 900
    due: 2027-01-01
    worktree: lab
    run: ls
    max_retries: 9
    no_retry: [ValueError]
    lease_seconds: 7
    context_ref: doc
    metadata: {x: 1}
    on_failure: ignore
    after: [last, extra]
    parent: extra
  - {name: last, title: Last, persona: reviewer, parent: extra}
  - {name: extra, title: Extra, persona: implementer}
"""
"""The plan with `middle` gone, `extra` added, and `first` and `last` the other way round."""

EXTRA = "plan: p\ntasks:\n- {name: extra, title: Extra, persona: implementer}\n"

CHECKLIST = """
# P
- [ ] First {persona=implementer}
- [ ] Middle {persona=tester}
  - [ ] Part {after=first}
- [ ] Last {persona=reviewer after=first,middle}
"""
