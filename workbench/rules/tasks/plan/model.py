"""What a plan is: tasks with names, that may wait for each other and be parts of each other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from workbench.model import SECOND, OnFailure
from workbench.rules.wire import json_safety

LINE = "\0line"
"""Under what the parser notes the line of a task: no text can say it."""

Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class PlannedTask(BaseModel):
    """One task of a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    title: str = Field(min_length=1, max_length=200)
    persona: str = Field(min_length=1, max_length=100)
    description: str = Field("", max_length=100_000)
    parent: Name | None = None
    priority: int = Field(500, ge=-1_000_000, le=1_000_000)
    worktree: str | None = Field(None, max_length=50)
    session: str | None = Field(None, min_length=1, max_length=200)
    after: list[Name] = Field([], max_length=1_000)
    on_failure: OnFailure = OnFailure.BLOCK
    run: str | list[str] | None = Field(None, min_length=1)
    max_retries: int | None = Field(None, ge=0, le=100)
    no_retry: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field([], max_length=50)
    lease_seconds: float | None = Field(None, gt=0, le=86_400)
    context_ref: str | None = Field(None, max_length=1_000)
    metadata: dict[str, JsonValue] = {}
    line: int = Field(0, alias=LINE, description="Where the task begins in the text; filled in by the parser.")

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
    """An item of a checklist that is done already: nothing to create, and nothing to wait for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    line: int = Field(0, alias=LINE)


class Plan(BaseModel):
    """A named list of tasks whose dependencies and parents exist and have no cycle."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    plan: Name
    tasks: list[PlannedTask]
    ticked: list[Ticked] = []

    @property
    def worktrees(self) -> list[str]:
        """The branches of work, in order of appearance."""
        return list(dict.fromkeys(task.worktree for task in self.tasks if task.worktree))


def meaning(task: PlannedTask) -> dict[str, Any]:
    """What a task says, without what makes no difference: order of dependencies, space around a description."""
    told = task.model_dump(mode="json", exclude={"line"})
    return told | {
        "persona": task.persona.lower(),
        "description": task.description.strip(),
        "after": sorted(set(task.after)),
    }


def digest(plan: Plan) -> str:
    """SHA-256 of what a plan means, under whatever name: equal for texts that differ in form only."""
    told = [meaning(task) for task in sorted(open_tasks(plan), key=lambda task: task.name)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def open_tasks(plan: Plan) -> list[PlannedTask]:
    """The tasks, no longer naming what is ticked."""
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
    """What holds for a task whose plan says nothing about it."""

    max_retries: int
    lease_seconds: float
    persona_lease_seconds: Mapping[str, float | None]
    """Of every persona there is; None for one without a lease of its own."""

    def filled(self, task: PlannedTask) -> PlannedTask:
        """The task with what it does not say, as the store would keep it."""
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
