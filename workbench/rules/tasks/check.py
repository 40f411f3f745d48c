"""When a task is done, and the check that tells: a command that must pass on the exact commit of an attempt.

A check is written as its command, or as a mapping: ``{run: pytest, repeats: 1, seconds: 600, files: [tests], hide:
[answers]}``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from workbench.rules.reasons import reason
from workbench.rules.runs import values
from workbench.rules.wire import json_safety

Text = Annotated[str, Field(min_length=1, max_length=100_000)]
LONGEST_NAME = 100
"""The most characters of the name of a metric."""


class DoneWhen(StrEnum):
    """What makes a task done: its branch has changed, its check has passed, or its agent says so."""

    CHANGED = "changed"
    CHECKED = "checked"
    SAID = "said"


class Evidence(StrEnum):
    """What tells that a completed task is done: its agent's word alone, commits, the lack of them, or its check."""

    SAID = "said"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    CHECKED = "checked"
    FLAKY = "flaky"


class CheckState(StrEnum):
    """The states of a check; `flaky`: it has passed, but only when it was run again."""

    WAITING = "waiting"
    RUNNING = "running"
    PASSED = "passed"
    FLAKY = "flaky"
    FAILED = "failed"


def _inside(path: str) -> str:
    place = PurePosixPath(path)
    if place.is_absolute() or ".." in place.parts or place == PurePosixPath() or "\0" in path:
        raise ValueError(f"{path!r} is no path below the repository's root")
    return str(place)


Inside = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_inside)]


class Check(BaseModel):
    """A command that must pass.

    `repeats`: how often it is run again after it has failed; `seconds`: how long a run may take, None: as the settings
    say. `files` are those of the check: they are taken from the target, whatever the attempt made of them. `hide` are
    those that no attempt may read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    run: Text | Annotated[list[Text], Field(min_length=1)]
    repeats: int = Field(0, ge=0, le=10)
    seconds: float | None = Field(None, gt=0, le=86_400)
    files: list[Inside] = Field([], max_length=100)
    hide: list[Inside] = Field([], max_length=100)

    @property
    def argv(self) -> list[str]:
        """Its words, or the line for the shell."""
        return ["/bin/sh", "-c", self.run] if isinstance(self.run, str) else self.run


def check_of(value: Any) -> Check | None:
    """The check that a value describes; None: none.

    Raises:
        ValueError: what is wrong with it.
    """
    if value is None:
        return None
    json_safety.check(value)
    try:
        return Check.model_validate(value if isinstance(value, Mapping) else {"run": value})
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        if found["loc"][0] == "run" and found["type"] != "missing":
            raise ValueError("it must be a command, or a list of words") from None
        raise ValueError(f"{'.'.join(map(str, found['loc']))}: {reason(found)}") from None


def in_short(value: Any) -> Any:
    """A check as plain data, in the shortest form that says the same.

    Raises:
        ValueError: what is wrong with it.
    """
    check = check_of(value)
    if check is None:
        return None
    for path in check.hide:
        if set("*?[") & set(path):  # it would hide nothing
            raise ValueError(f"hide: {path!r} is a pattern and no path; name the file or its directory")
    stated = check.model_dump(mode="json", exclude_defaults=True)
    return stated["run"] if stated.keys() == {"run"} else stated


CheckTerm = Annotated[
    Any,
    BeforeValidator(in_short),
    WithJsonSchema({"anyOf": [{"type": kind} for kind in ("string", "array", "object", "null")]}),
]
"""A check in plans and operations, as `in_short` returns it."""


def metrics_of(answer: Any) -> dict[str, float]:
    """The metrics in what a check wrote to its result file: numbers by name.

    Raises:
        ValueError: they are none.
    """
    metrics = answer.get("metrics", {}) if isinstance(answer, dict) else None
    if not isinstance(metrics, dict):
        raise ValueError('the result is not {"metrics": {"name": number}}')
    for name, value in metrics.items():
        shown = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
        if len(name) > LONGEST_NAME or not re.fullmatch(values.NAME, name):
            raise ValueError(
                f"{shown!r} is no name of a metric: it has 1 to {LONGEST_NAME} characters, without <, >, = and !"
            )
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not abs(value) <= sys.float_info.max:  # an integer may be larger than any float
            raise ValueError(f"the metric {shown!r} is no finite number")
    return metrics
