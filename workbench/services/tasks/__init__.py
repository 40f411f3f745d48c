"""Tasks: what there is to do, in what order, and how it stands (spec 3).

- `task`: what is told of one;
- `rows`: finding one, whether the caller sees it, and how its row is told;
- `new_task`: one to be;
- `making`: it is added, alone or with many;
- `looking`: at one task and its log, and waiting for its end;
- `board`: all that the caller sees, as a list, counted, as a graph and as a tree.

Doing it is in `leases`, what waits for what in `dependencies`, and changing one's mind in `steering`.
"""

from workbench.services.tasks import (
    attempts,
    board,
    changes,
    claims,
    creation,
    dependencies,
    details,
    expiry,
    heartbeat,
    plans,
    progress,
    rows,
    task,
)

__all__ = [
    "attempts",
    "board",
    "changes",
    "claims",
    "creation",
    "dependencies",
    "details",
    "expiry",
    "heartbeat",
    "plans",
    "progress",
    "rows",
    "task",
]
