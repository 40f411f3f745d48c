"""An open project with a session, and plans that the tests send."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from workbench.app import Workbench
from workbench.settings import Settings
from workbench.store.queries import Query


@pytest.fixture
async def workbench(migrated: Settings) -> AsyncIterator[Workbench]:
    """An open project with a session, `night`."""
    async with Workbench.open(migrated) as opened:
        await opened.call("create_project", name="house")
        await opened.call("create_session", project_id="house", name="night")
        yield opened


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
