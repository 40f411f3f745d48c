"""One noun, one package: its operations, its SQL beside them, its events. `SERVICES` is the only list of them."""

from types import ModuleType

from workbench.services import (
    access,
    agents,
    approvals,
    attempts,
    conversations,
    definitions,
    insight,
    integration,
    personalities,
    processes,
    reviews,
    runs,
    saved_views,
    sharing,
    spaces,
    spawning,
    tasks,
    tools,
    undo,
    worktrees,
)

SERVICES: tuple[ModuleType, ...] = (
    access,
    agents,
    approvals,
    attempts,
    conversations,
    definitions,
    insight,
    integration,
    personalities,
    processes,
    reviews,
    runs,
    saved_views,
    sharing,
    spaces,
    spawning,
    tasks,
    tools,
    undo,
    worktrees,
)
