"""The person's home directory, and paths that begin with it. A user whom the system does not know may have none."""

from __future__ import annotations

import os
from pathlib import Path

NOWHERE = Path(os.devnull, "no-home")
"""The home of a user who has none: a path that does not exist and cannot be created. Python would leave `~` in place,
which names a directory below the current one."""


def home() -> Path:
    """The home directory, from `HOME` or the system's list of users; `NOWHERE` if there is none."""
    try:
        path = Path.home()
    except RuntimeError:
        return NOWHERE
    return path if path.is_absolute() else NOWHERE


def expanded(path: str | Path) -> Path:
    """A path with the home in place of `~`; one of a user who is unknown is below `NOWHERE`."""
    original = Path(path)
    if original.parts[:1] == ("~",):
        return home().joinpath(*original.parts[1:])
    try:
        return original.expanduser()
    except RuntimeError:
        return NOWHERE / original
