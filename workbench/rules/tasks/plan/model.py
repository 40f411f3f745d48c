"""The model of a plan: named tasks with dependencies and parents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from workbench.model import SECOND, Day, OnFailure
from workbench.rules.budgets import BudgetTerm
from workbench.rules.needs import NeedsTerm
from workbench.rules.secrets.executed import as_given, with_masks
from workbench.rules.secrets.forms import MASK
from workbench.rules.tasks.check import CheckTerm, DoneWhen
from workbench.rules.wire import json_safety

LINE = "\0line"
"""The key under which the parser stores the line of a task; no text can contain it."""

Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class PlannedTask(BaseModel):
    """One task of a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: Name
    title: str = Field(min_length=1, max_length=200)
    persona: str = Field(min_length=1, max_length=100)
    description: str = Field("", max_length=100_000)
    parent: Name | None = None
    priority: int = Field(500, ge=-1_000_000, le=1_000_000)
    due: Day | None = None
    worktree: str | None = Field(None, max_length=50)
    session: str | None = Field(None, min_length=1, max_length=200)
    after: list[Name] = Field([], max_length=1_000)
    on_failure: OnFailure = OnFailure.BLOCK
    run: str | list[str] | None = Field(None, min_length=1)
    check: CheckTerm = None
    done_when: DoneWhen | None = None
    needs: NeedsTerm = None
    budget: BudgetTerm = None
    max_retries: int | None = Field(None, ge=0, le=100)
    no_retry: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field([], max_length=50)
    lease_seconds: float | None = Field(None, gt=0, le=86_400)
    context_ref: str | None = Field(None, max_length=1_000)
    metadata: dict[str, JsonValue] = {}
    line: int = Field(0, alias=LINE, description="The line in which the task begins; set by the parser.")

    @field_validator("run")
    @classmethod
    def _is_text(cls, value: str | list[str] | None) -> str | list[str] | None:
        for part in value or "":
            part.encode()
        return value

    @field_validator("metadata")
    @classmethod
    def _can_travel(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        json_safety.check(value)
        return value


class Ticked(BaseModel):
    """A ticked item of a checklist: nothing to create or wait for."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: Name
    line: int = Field(0, alias=LINE)


class Plan(BaseModel):
    """A named list of tasks whose dependencies and parents exist and form no cycle."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    plan: Name
    tasks: list[PlannedTask]
    ticked: list[Ticked] = []
    budget: BudgetTerm = None
    """What all its tasks together may spend."""
    workplace: dict[str, Any] | None = {}
    """The keys of a workplace for the agents of its tasks; None: the text, a checklist, cannot state them."""

    @property
    def worktrees(self) -> list[str]:
        """The names of the worktrees, in order of appearance."""
        return list(dict.fromkeys(task.worktree for task in self.tasks if task.worktree))


GIVEN = ("title", "description", "run", "check", "metadata")
"""What of a task is executed or sent to models."""


TERMS = ("check", "done_when", "needs")
"""What makes a task done, and what it needs; a plan may state them for all its tasks that do not."""


def meaning(task: PlannedTask) -> dict[str, Any]:
    """A task's content in normal form: case of the persona, space around the description, order of dependencies."""
    unsaid = (name for name in (*TERMS, "budget") if getattr(task, name) is None)
    fields = task.model_dump(mode="json", exclude={"line", *unsaid})
    return fields | {
        "persona": task.persona.lower(),
        "description": task.description.strip(),
        "after": sorted(set(task.after)),
    }


def without_secrets(task: PlannedTask) -> PlannedTask:
    """A task as it is shown."""
    return task.model_copy(update={field: with_masks(getattr(task, field)) for field in GIVEN})


def with_secrets(plan: Plan, stored: Sequence[PlannedTask]) -> Plan:
    """A plan by somebody who was shown it masked: what was not changed of the stored tasks keeps its secrets."""
    known = {task.name: task for task in stored}

    def of(task: PlannedTask) -> PlannedTask:
        old = known.get(task.name)
        if old is None or MASK not in str(task):
            return task
        return task.model_copy(update={field: as_given(getattr(task, field), getattr(old, field)) for field in GIVEN})

    return plan.model_copy(update={"tasks": [of(task) for task in plan.tasks]})


def digest(plan: Plan) -> str:
    """The SHA-256 of a plan's content without its name: equal for texts that differ in form only."""
    content = [meaning(task) for task in sorted(open_tasks(plan), key=lambda task: task.name)]
    stated: Any = [content, plan.workplace] if plan.workplace else content
    stated = {"budget": plan.budget, "rest": stated} if plan.budget else stated
    return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()


def open_tasks(plan: Plan) -> list[PlannedTask]:
    """The tasks, without references to ticked items."""
    known = {task.name for task in plan.tasks}
    return [
        task.model_copy(
            update={
                "after": [other for other in task.after if other in known],
                "parent": task.parent if task.parent in known else None,
            }
        )
        for task in plan.tasks
    ]


@dataclass(frozen=True)
class Defaults:
    """The defaults of tasks in a plan."""

    max_retries: int
    lease_seconds: float
    persona_lease_seconds: Mapping[str, float | None]
    """By the id of every persona; None for one without a lease of its own."""

    def filled(self, task: PlannedTask) -> PlannedTask:
        """The task with defaults filled in, as the store would return it."""
        lease = self._lease(task) if task.lease_seconds is None else task.lease_seconds
        retries = self.max_retries if task.max_retries is None else task.max_retries
        return task.model_copy(update={"lease_seconds": max(int(lease * SECOND), 1) / SECOND, "max_retries": retries})

    def stripped(self, task: PlannedTask) -> PlannedTask:
        """The task without the values that are defaults."""
        update: dict[str, Any] = {}
        if task.lease_seconds == self._lease(task):
            update["lease_seconds"] = None
        if task.max_retries == self.max_retries:
            update["max_retries"] = None
        return task.model_copy(update=update)

    def _lease(self, task: PlannedTask) -> float:
        return self.persona_lease_seconds.get(task.persona.lower()) or self.lease_seconds


def in_order(plan: Plan) -> list[PlannedTask]:
    """The tasks in an order in which each comes after its dependencies, otherwise as written."""
    place = {task.name: at for at, task in enumerate(plan.tasks)}
    order = TopologicalSorter({task.name: [on for on in task.after if on in place] for task in plan.tasks})
    order.prepare()
    names: list[str] = []
    while order.is_active():
        ready = sorted(order.get_ready(), key=place.__getitem__)
        names.extend(ready)
        order.done(*ready)
    return [plan.tasks[place[name]] for name in names]


def find_cycle(edges: Mapping[str, Sequence[str]]) -> list[str] | None:
    """A cycle in a graph of `node -> dependencies`, with the first node repeated at the end; None if there is none."""
    finished: set[str] = set()
    for start in edges:
        if start in finished:
            continue
        path, on_path = [start], {start}
        stack = [iter(edges[start])]
        while stack:
            following = next((n for n in stack[-1] if n in edges and n not in finished), None)
            if following is None:
                stack.pop()
                done = path.pop()
                on_path.discard(done)
                finished.add(done)
            elif following in on_path:
                return [*path[path.index(following) :], following]
            else:
                path.append(following)
                on_path.add(following)
                stack.append(iter(edges[following]))
    return None
