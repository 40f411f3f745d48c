"""Tasks: units of work with a state, dependencies and attempts (spec 3).

- `task`: the types of the operations' arguments and answers
- `rows`: reading and updating rows, who may see and change them, conversion to answers
- `creation`, `plans`: adding tasks, one by one or as a plan
- `approval`: tasks of agents that wait until a person approves them
- `changes`: subtasks, cancel, retry, reopen, reassign, priority
- `editing`: the fields of a task that is in no plan
- `dependencies`: which tasks wait for which
- `board`, `details`: reading many tasks, reading one
- `claims`, `heartbeat`, `progress`: an agent's work under a lease
- `attempts`, `expiry`: supervised attempts, attempts that end without success, leases and retry pauses that end
"""

from workbench.services.tasks import (
    approval,
    attempts,
    board,
    changes,
    claims,
    creation,
    dependencies,
    details,
    editing,
    expiry,
    heartbeat,
    plans,
    progress,
    rows,
    task,
)

__all__ = [
    "approval",
    "attempts",
    "board",
    "changes",
    "claims",
    "creation",
    "dependencies",
    "details",
    "editing",
    "expiry",
    "heartbeat",
    "plans",
    "progress",
    "rows",
    "task",
]
