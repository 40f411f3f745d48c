"""The environment variables that agents were spawned with, kept for restarts in files that only their owner can read.

They are not in the store, because its rows are exported, queried and backed up, and variables often hold secrets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from workbench.errors import Unavailable
from workbench.state.settings import Settings


def save(settings: Settings, agent_uid: str, environment: Mapping[str, str]) -> None:
    """Save the variables of an agent, if there are any. Blocks.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    if not environment:
        return
    path = _path(settings, agent_uid)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(dict(environment), file)
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error


def load(settings: Settings, agent_uid: str) -> dict[str, str] | None:
    """The saved variables of an agent; None if there are none, or the file cannot be read. Blocks."""
    try:
        saved = json.loads(_path(settings, agent_uid).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return {str(name): str(value) for name, value in saved.items()} if isinstance(saved, dict) else None


def remove(settings: Settings, agent_uid: str) -> None:
    """Remove the saved variables of an agent. Blocks."""
    _path(settings, agent_uid).unlink(missing_ok=True)


def _path(settings: Settings, agent_uid: str) -> Path:
    return settings.home / "environments" / f"{agent_uid}.json"
