"""The paths of definitions: what none may be, and what the names of new directories are like."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from workbench.rules.definitions.names import DEVICES

PATH_LIMIT = 4_000
NAME_LIMIT = 100
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9 ._-]*[A-Za-z0-9_-])?")


def flaw(path: str) -> str | None:
    """What is wrong with a path, wherever it leads; None if nothing is."""
    flaws = {
        "it is empty": not path,
        f"it is longer than {PATH_LIMIT:,} characters": len(path) > PATH_LIMIT,
        "it contains characters that cannot be shown": not path.isprintable(),
        "its parts are separated by '/'": "\\" in path,
        "it must not contain '..'": ".." in PurePosixPath(path).parts,
    }
    return next((reason for reason, found in flaws.items() if found), None)


def flaw_of_name(name: str) -> str | None:
    """What is wrong with the name of a new directory; None if nothing is.

    Letters of other alphabets look like those of this one, and some file systems do not have all characters and names.
    """
    if len(name) > NAME_LIMIT:
        return f"it is longer than {NAME_LIMIT} characters"
    if not _NAME.fullmatch(name):
        return "it consists of letters without accents, digits, '-', '_', and, inside, '.' and spaces"
    if name.partition(".")[0].rstrip().lower() in DEVICES:
        return "it is the name of a device on Windows"
    return None
