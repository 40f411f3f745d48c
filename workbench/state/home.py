"""The person's home directory, and paths that begin with it. A user whom the system does not know may have none."""

from __future__ import annotations

import os
from pathlib import Path

NOWHERE = Path(os.devnull, "no-home")
"""Stands for the home of a user who has none: nothing is there, and nothing can be made there. Python would leave `~`
as it is, which is a directory of the current one."""


def home() -> Path:
    """The home directory, from `HOME` or the system's list of users; `NOWHERE` if there is none."""
    try:
        found = Path.home()
    except RuntimeError:
        return NOWHERE
    return found if found.is_absolute() else NOWHERE


def expanded(path: str | Path) -> Path:
    """A path with the home in place of `~`; one of a user who is unknown is below `NOWHERE`."""
    given = Path(path)
    if given.parts[:1] == ("~",):
        return home().joinpath(*given.parts[1:])
    try:
        return given.expanduser()
    except RuntimeError:
        return NOWHERE / given
