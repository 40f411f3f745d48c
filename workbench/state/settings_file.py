"""Files of settings: `.aiswarm/settings.toml` of a project, or the user's own; and the line of each setting."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from workbench.errors import BadInput, why_unreadable
from workbench.system import atomic_file

LISTS: Mapping[str, str] = {
    "definition_roots": os.pathsep,
    "allowed_agents": ",",
    "confinement_read": ":",
    "confinement_write": ":",
    "confinement_connect": ",",
}
"""Settings that are lists, and what separates their items in one text; a file may also have a list of TOML."""
NOT_TRUSTED = "The project's settings.toml sets {names}, but you have not trusted it: `workbench trust` shows it."
"""What to add to an error that says to set a setting, where that is so."""


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


def joined(name: str, given: Any) -> Any:
    """The items of a list of TOML as one text; anything else as it is.

    Args:
        name: of the setting, one of `LISTS`.

    Raises:
        ValueError: the list has an item that it cannot have.
    """
    if not isinstance(given, list | tuple):
        return given
    separator = LISTS[name]
    for item in given:
        if isinstance(item, bool) or not isinstance(item, str | int):
            raise ValueError("each item of the list should be a text or a whole number")
        if separator in str(item) or not str(item).strip():
            raise ValueError(f"no item of the list may be empty or contain {separator!r}")
    return separator.join(map(str, given))


def commands(given: Any) -> Any:
    """The lines, or the JSON list, of an environment variable as a list, without blank ones; anything else as it is.

    Raises:
        ValueError: it begins like JSON, and is none.
    """
    if isinstance(given, str):
        given = json.loads(given) if given.lstrip().startswith("[") else given.splitlines()
    if not isinstance(given, list | tuple):
        return given
    return tuple(one for one in given if not isinstance(one, str) or one.strip())


def place(path: Path, name: str) -> str:
    """Where a setting is set, for messages: the file, and the line if it can be found."""
    line = line_of(path, name)
    return str(path) if line is None else f"{path}, line {line}"


def line_of(path: Path, name: str) -> int | None:
    """The number, from 1, of the line that sets a name; None if none is found."""
    setting = re.compile(rf"""\s*\[{{0,2}}\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
    lines = enumerate(path.read_text("utf-8").splitlines(), 1)
    return next((number for number, line in lines if setting.match(line)), None)
