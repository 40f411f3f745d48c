"""What an agent's environment was when it was spawned: kept in a file that only the person can read, for restarts.

Not in the store: its rows are exported, queried and backed up, and variables are where people put secrets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from workbench.errors import Unavailable
from workbench.settings import Settings


def keep(settings: Settings, agent: str, environment: Mapping[str, str]) -> None:
    """Keep the variables of an agent (internal id); none need no file. Blocks.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    if not environment:
        return
    path = _path(settings, agent)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(dict(environment), file)
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error


def recall(settings: Settings, agent: str) -> dict[str, str] | None:
    """The variables that were kept; None if there are none, or they were lost. Blocks."""
    try:
        said = json.loads(_path(settings, agent).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return {str(name): str(value) for name, value in said.items()} if isinstance(said, dict) else None


def forget(settings: Settings, agent: str) -> None:
    """Remove what was kept. Blocks."""
    _path(settings, agent).unlink(missing_ok=True)


def _path(settings: Settings, agent: str) -> Path:
    return settings.home / "environments" / f"{agent}.json"
