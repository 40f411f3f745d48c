"""The names of rules, references, tools and MCP servers in a definition: some of them are also file names."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import chain, count
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from workbench.rules.naming import Name

LONGEST = 100
_VALID = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST}}}")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_OTHERS = re.compile(r"[^a-zA-Z0-9_-]+")
DEVICES = frozenset({"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)})
"""Names that are devices on Windows, whatever follows a dot."""


def _no_device(name: str) -> str:
    if name.lower() in DEVICES:
        raise ValueError("is the name of a device on Windows")
    return name


EntryName = Annotated[
    str, StringConstraints(min_length=1, max_length=LONGEST, pattern=r"^[a-zA-Z0-9_-]+$"), AfterValidator(_no_device)
]


def is_id(text: str) -> bool:
    """Whether a text has the form of a definition's id, a UUID, which no name has; older files may have words."""
    return _ID.fullmatch(text) is not None


def _no_id(name: str) -> str:
    if is_id(name):
        raise ValueError("has the form of an id (a UUID), by which no agent may be called")
    return name


def _no_path(name: str) -> str:
    if "/" in name:
        raise ValueError("has a '/', by which paths are known: it could not be named")
    return name


DefinitionName = Annotated[Name, AfterValidator(_no_id)]
"""The name of a definition: never the id of another."""
NewDefinitionName = Annotated[DefinitionName, AfterValidator(_no_path)]
"""The name of a new one."""


def repeated(names: Iterable[str]) -> list[str]:
    """The names that occur twice. Upper and lower case are the same: some file systems do not tell them apart."""
    return sorted(name for name, times in Counter(map(str.lower, names)).items() if times > 1)


def fitting(name: str, taken: Iterable[str] = ()) -> str:
    """A valid name that is as much like another one as possible; that one itself, if it is valid and not taken.

    Args:
        taken: names that it must differ from, by more than upper and lower case.
    """
    base = name if _VALID.fullmatch(name) else _spelled(name)
    others = {one.lower() for one in taken} | DEVICES
    numbered = (f"{base[: LONGEST - 5]}-{number}" for number in count(2))
    return next(one for one in chain([base], numbered) if one.lower() not in others)


def _spelled(name: str) -> str:
    """A text with the characters that names may have: letters lose their accents, all others become hyphens."""
    letters = (letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter))
    return _OTHERS.sub("-", "".join(letters)).strip("-")[:LONGEST] or "unnamed"
