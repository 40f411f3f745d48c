"""One noun, one package: its operations, its SQL beside them, its events. `SERVICES` is the only list of them."""

from types import ModuleType

from workbench.services import (
    access,
    agents,
    approvals,
    attempts,
    insight,
    integration,
    processes,
    sharing,
    spaces,
    spawning,
    tasks,
    worktrees,
)

SERVICES: tuple[ModuleType, ...] = (
    access,
    agents,
    approvals,
    attempts,
    insight,
    integration,
    processes,
    sharing,
    spaces,
    spawning,
    tasks,
    worktrees,
)
