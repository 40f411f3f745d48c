"""Tasks: what there is to do, in what order, and how it stands (spec 3).

- `task`: what is told of one;
- `rows`: finding one, whether the caller sees it, and how its row is told;
- `new_task`: one to be;
- `making`: it is added, alone or with many;
- `looking`: at one task and its log, and waiting for its end;
- `board`: all that the caller sees, as a list, counted, as a graph and as a tree.

Doing it is in `leases`, what waits for what in `dependencies`, and changing one's mind in `steering`.
"""

from __future__ import annotations

from workbench.services.tasks.board import count_tasks, get_task_graph, get_task_tree, list_tasks
from workbench.services.tasks.creation import add_task, create_task, create_tasks, reservable, session_for
from workbench.services.tasks.details import get_task, get_task_logs, get_task_status, wait_for_task
from workbench.services.tasks.new_task import (
    ContextRef,
    Dependencies,
    Description,
    NewTask,
    NoRetry,
    PlannedTask,
    Policy,
    Priority,
    Retries,
    Run,
    Title,
    bounded_json,
)
from workbench.services.tasks.rows import (
    SQL,
    blockers,
    line_of,
    not_claimable,
    require_line,
    require_row,
    require_task,
    require_task_line,
    task_lines,
    task_of,
    task_scope,
    visible_row,
)
from workbench.services.tasks.task import Task, TaskLine

__all__ = [
    "SQL",
    "ContextRef",
    "Dependencies",
    "Description",
    "NewTask",
    "NoRetry",
    "PlannedTask",
    "Policy",
    "Priority",
    "Retries",
    "Run",
    "Task",
    "TaskLine",
    "Title",
    "add_task",
    "blockers",
    "bounded_json",
    "count_tasks",
    "create_task",
    "create_tasks",
    "get_task",
    "get_task_graph",
    "get_task_logs",
    "get_task_status",
    "get_task_tree",
    "line_of",
    "list_tasks",
    "not_claimable",
    "require_line",
    "require_row",
    "require_task",
    "require_task_line",
    "reservable",
    "session_for",
    "task_lines",
    "task_of",
    "task_scope",
    "visible_row",
    "wait_for_task",
]
