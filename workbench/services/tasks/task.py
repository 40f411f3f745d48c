"""A task as it is told: in a list, in few words, and with everything about it."""

from __future__ import annotations

from typing import Any

from workbench.model import Micros, OnFailure, TaskState, Wire


class TaskSummary(Wire):
    """A task in a list."""

    id: int
    title: str
    status: TaskState
    persona_id: str
    priority: int
    worktree: str | None
    plan: str | None
    name: str | None
    parent_task_id: int | None
    session_id: str | None
    assigned_agent_id: str | None
    progress: int
    attempt: int
    retry_count: int
    blocked: bool
    not_before: Micros | None
    error_message: str | None


class Attempt(Wire):
    """One claim of a task, and how it ended."""

    attempt: int
    agent_id: str
    claimed_at: Micros
    started_at: Micros | None
    ended_at: Micros | None
    outcome: str | None
    error_class: str | None
    error_message: str | None


class Task(TaskSummary):
    """A task with everything about it."""

    description: str
    run: str | list[str] | None
    context_ref: str | None
    metadata: dict[str, Any]
    dependencies: list[int]
    blocked_by: list[int]
    created_by: str
    created_at: Micros
    claimed_at: Micros | None
    started_at: Micros | None
    completed_at: Micros | None
    lease_expires_at: Micros | None
    max_retries: int
    lease_seconds: float
    reserved_for: str | None
    on_failure: OnFailure
    no_retry: list[str]
    result_data: Any
    artifacts: list[str]
    attempts: list[Attempt]


class TaskStatus(Wire):
    """How a task stands, in few words."""

    id: int
    status: TaskState
    progress: int
    attempt: int
    assigned_agent_id: str | None
    lease_expires_at: Micros | None
    blocked_by: list[int]
    error_message: str | None
