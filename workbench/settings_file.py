"""Files of settings: `.aiswarm/settings.toml` of a project, or the user's own; and the line of each setting."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workbench import atomic_file
from workbench.errors import BadInput, why_unreadable


def settings_path(project: Path) -> Path:
    """The path of a project's settings file."""
    return project / ".aiswarm" / "settings.toml"


def read(path: Path, known: Iterable[str]) -> dict[str, Any]:
    """The settings in a file, by name; none when the file does not exist.

    Args:
        known: the names that are allowed.

    Raises:
        BadInput: ``BAD_SETTINGS``: the file cannot be read, is not TOML, or has other names.
    """
    try:
        found = tomllib.loads(atomic_file.read(path))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(
            "BAD_SETTINGS", f"{path} cannot be read: {why_unreadable(error)}. Correct it or move it away."
        ) from None
    if unknown := sorted(set(found) - set(known), key=lambda name: line_of(path, name) or 0):
        wrong = "; ".join(f"{place(path, name)}: there is no setting {name!r}" for name in unknown)
        raise BadInput(
            "BAD_SETTINGS", f"{wrong}. Correct or remove the line; docs/reference.md lists the settings."
        ) from None
    return found


def place(path: Path, name: str) -> str:
    """Where a setting is set, for messages: the file, and the line if it can be found."""
    line = line_of(path, name)
    return str(path) if line is None else f"{path}, line {line}"


def line_of(path: Path, name: str) -> int | None:
    """The number, from 1, of the line that sets a name; None if none is found."""
    setting = re.compile(rf"""\s*\[{{0,2}}\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
    lines = enumerate(path.read_text("utf-8").splitlines(), 1)
    return next((number for number, line in lines if setting.match(line)), None)
