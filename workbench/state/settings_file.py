"""Files of settings: `.aiswarm/settings.toml` of a project, or the user's own; and the line of each setting."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
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
"""Settings that are lists, and the separator of their items in a text; a file may also have a TOML list."""
NOT_TRUSTED = "The project's settings.toml sets {names}, but you have not trusted it: `workbench trust` shows it."
"""An addition to errors that ask for a setting which the file sets, but which is not trusted."""


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
        values = tomllib.loads(atomic_file.read(path))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(
            "BAD_SETTINGS", f"{path} cannot be read: {why_unreadable(error)}. Correct it or move it away."
        ) from None
    if unknown := sorted(set(values) - set(known), key=lambda name: line_of(path, name) or 0):
        names = frozenset(known)
        problems = "; ".join(f"{place(path, name)}: {_unknown(name, names)}" for name in unknown)
        raise BadInput(
            "BAD_SETTINGS", f"{problems}. Correct or remove the line; docs/reference.md lists the settings."
        ) from None
    return values


def _unknown(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"there is no setting {name!r}" + (f" (did you mean {near[0]}?)" if near else "")


def joined(name: str, value: Any) -> Any:
    """The items of a TOML list as one text; any other value unchanged.

    Args:
        name: of the setting, one of `LISTS`.

    Raises:
        ValueError: the list has an invalid item.
    """
    if not isinstance(value, list | tuple):
        return value
    separator = LISTS[name]
    for item in value:
        if isinstance(item, bool) or not isinstance(item, str | int):
            raise ValueError("each item of the list should be a text or a whole number")
        if separator in str(item) or not str(item).strip():
            raise ValueError(f"no item of the list may be empty or contain {separator!r}")
    return separator.join(map(str, value))


def commands(value: Any) -> Any:
    """The lines or the JSON list of an environment variable, without blank items; any other value unchanged.

    Raises:
        ValueError: it begins like JSON but is invalid.
    """
    if isinstance(value, str):
        value = json.loads(value) if value.lstrip().startswith("[") else value.splitlines()
    if not isinstance(value, list | tuple):
        return value
    return tuple(command for command in value if not isinstance(command, str) or command.strip())


def place(path: Path, name: str) -> str:
    """The place of a setting, for messages: the file, and the line if it can be found."""
    line = line_of(path, name)
    return str(path) if line is None else f"{path}, line {line}"


def line_of(path: Path, name: str) -> int | None:
    """The number, from 1, of the line that sets a name; None if there is none."""
    setting = re.compile(rf"""\s*\[{{0,2}}\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
    lines = enumerate(path.read_text("utf-8").splitlines(), 1)
    return next((number for number, line in lines if setting.match(line)), None)
