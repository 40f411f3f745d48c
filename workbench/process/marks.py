"""Marks: every process started here gets one in its environment, and its descendants inherit it.

A mark identifies a descendant even if its parents ended and it created its own session. The variable holds the marks of
all starts above a process, the latest last.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from uuid import uuid4

import psutil

MARK = "WORKBENCH_PROCESS_MARKS"
"""The variable; marks are separated by ``:``."""


def new_mark(owner: str = "") -> str:
    """A mark that no other process has; it names the owner of the process, if there is one."""
    return f"{owner}-{uuid4().hex}" if owner else uuid4().hex


def is_owned(mark: str | None, owner: str) -> bool:
    """Whether no other owner is named in a mark; without `owner`, every mark is owned."""
    mark_owner = (mark or "").rpartition("-")[0]
    return not owner or not mark_owner or mark_owner == owner


def marked(environment: Mapping[str, str], mark: str) -> dict[str, str]:
    """An environment with a mark added to those of this process."""
    return {**environment, MARK: ":".join(filter(None, (os.environ.get(MARK), mark)))}


def mark_this_process() -> None:
    """Give this process a mark for its descendants, if it was started without one."""
    os.environ.setdefault(MARK, new_mark())


def inherited_mark() -> dict[str, str]:
    """The variable that identifies descendants of this process, for an environment that does not inherit it."""
    return {MARK: os.environ[MARK]} if os.environ.get(MARK) else {}


def marks_of(process: psutil.Process) -> Sequence[str]:
    """The marks of a process; none if its environment cannot be read."""
    with suppress(psutil.Error, OSError):
        return [mark for mark in process.environ().get(MARK, "").split(":") if mark]
    return ()


def own_mark(process: psutil.Process) -> str | None:
    """The mark with which a process was started; None if this process has it too."""
    mark = marks_of(process)[-1:]
    return mark[0] if mark and mark[0] not in os.environ.get(MARK, "") else None
