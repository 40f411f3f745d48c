"""How a plan is carried out: who works on it, and who merges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from workbench.errors import BadInput

SCRIPT = "script"
"""The profile that runs the commands of tasks."""
ANY = "*"
"""In place of a persona: whoever else there is work for."""
_ONE = re.compile(r"(\*|[A-Za-z0-9_-]+)(?:=(\d{1,3}))?(?::([A-Za-z0-9._-]+))?")


@dataclass(frozen=True, slots=True)
class Staff:
    """At most `count` agents of a persona (`ANY`: of those that are not named) at a time, which work with a profile."""

    persona: str
    count: int = 1
    profile: str = SCRIPT


class Integrate(StrEnum):
    """Who merges finished worktrees: a person is asked, or those whose tasks are all checked are merged at once."""

    ASK = "ask"
    AUTO_IF_CHECKED = "auto-if-checked"


def parse_staff(text: str) -> Sequence[Staff]:
    """The staff that a text names, such as ``implementer=2:claude,reviewer=1``.

    Raises:
        BadInput: ``BAD_STAFF``.
    """
    found = [_ONE.fullmatch(part.strip()) for part in text.split(",") if part.strip()]
    staff = [Staff(one[1].lower(), int(one[2] or 1), one[3] or SCRIPT) for one in found if one]
    names = [one.persona for one in staff]
    if not staff or len(staff) < len(found) or len({*names}) < len(names) or not all(one.count for one in staff):
        raise BadInput(
            "BAD_STAFF",
            f"{text!r} names no staff. Write persona=number:profile, such as implementer=2:claude,reviewer=1, and each "
            f"persona once; {ANY} stands for all others.",
        )
    return staff


def as_text(staff: Sequence[Staff]) -> str:
    """Staff as `parse_staff` reads it; empty: there is none."""
    return ",".join(f"{one.persona}={one.count}:{one.profile}" for one in staff)
