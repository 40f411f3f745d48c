"""Where worktrees are that must not lie in their project's tree: where nothing of the project is found by walking up.

A worktree below the project is found to be in it by every tool that looks for its configuration in the directories
above, unless a box has it stand at the project's path.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from workbench.state.home import home
from workbench.state.user_files import CONFIG_VARIABLE
from workbench.system import atomic_file

ORIGIN = "origin"
"""The file of a state directory with the secret that shows whose it is."""
_STATE = "state"
"""The file beside the worktrees of a project that names its state directory."""


def directory() -> Path:
    """What all projects of this user have outside: below `WORKBENCH_CONFIG` if that is set, else `~/.local/state`."""
    configured = Path(os.environ.get(CONFIG_VARIABLE, ""))
    return configured / "outside" if configured.is_absolute() else home() / ".local" / "state" / "workbench"


def of(state: Path) -> Path:
    """What the project of a state directory has outside, also after it was moved; a copy has another."""
    try:
        name = atomic_file.read(state / ORIGIN, private=True)
    except (OSError, UnicodeDecodeError):
        name = str(state.resolve())
    return directory() / hashlib.sha256(os.fsencode(name)).hexdigest()[:32]


def make_around(path: Path, state: Path) -> None:
    """Make the directories around a path that a project has outside, and note whose they are.

    Raises:
        OSError: they cannot be written. Unavailable: ``PROJECT_UNWRITABLE``.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    atomic_file.replace(of(state) / _STATE, str(state.resolve()), mode=0o600)


def project_around(path: Path) -> Path | None:
    """The project to which a resolved path belongs that lies outside of it; None if it is no such path."""
    top = directory().resolve()
    own = next((place for place in (path, *path.parents) if place.parent == top), None)
    with suppress(OSError, UnicodeDecodeError):
        if own is not None and of(state := Path(atomic_file.read(own / _STATE, private=True))).name == own.name:
            return state.parent
    return None


def is_within(link: Path) -> bool:
    """Whether a link leads to what a project of this user has outside, as Workbench makes them."""
    with suppress(OSError):
        return link.readlink().is_relative_to(directory())
    return False
