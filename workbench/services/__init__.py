"""One noun, one package: its operations, its SQL beside them, its events. `SERVICES` is the only list
of them: each comes after those that it builds on, and what they do one after another is done in this order.
"""

from types import ModuleType

from workbench.services import (
    access,
    agents,
    approvals,
    attempts,
    conversations,
    definitions,
    holds,
    insight,
    integration,
    messages,
    models,
    personalities,
    processes,
    reviews,
    runs,
    saved_views,
    sharing,
    spaces,
    spawning,
    spending,
    tasks,
    tools,
    undo,
    worktrees,
)

SERVICES: tuple[ModuleType, ...] = (
    access,
    approvals,
    saved_views,
    holds,
    messages,
    spaces,
    models,
    spending,
    agents,
    tasks,
    sharing,
    processes,
    insight,
    definitions,
    tools,
    conversations,
    personalities,
    runs,
    worktrees,
    integration,
    spawning,
    reviews,
    attempts,
    undo,
)
