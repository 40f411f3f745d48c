"""Git commands of this process of which one fails once, as on a machine that is busy or has a full disk."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from workbench.git import run
from workbench.git.run import GitResult


def _busy(*_: Any) -> GitResult:
    raise OSError(errno.EAGAIN, "Resource temporarily unavailable")


def _unconfined(command: str, *_: Any) -> GitResult:
    why = "The command could not be confined, so it was not run: [Errno 11] Resource temporarily unavailable"
    return GitResult(command, 125, b"", why)


def _full(command: str, *_: Any) -> GitResult:
    return GitResult(command, 128, b"", "fatal: unable to write a file: No space left on device")


def _refused(command: str, *_: Any) -> GitResult:
    return GitResult(command, 1, b"", "error: unable to write a file: No space left on device")


def _killed(command: str, *_: Any) -> GitResult:
    return GitResult(command, -9, b"", "")


def _killed_late(*how: Any) -> GitResult:
    done = COMMUNICATE(*how)
    return GitResult(done.command, 137, b"", "")


def _late(command: str, *_: Any) -> GitResult:
    raise subprocess.TimeoutExpired(command, 60)


COMMUNICATE = run._communicate
KINDS: dict[str, Callable[..., GitResult]] = {
    "EAGAIN": _busy,
    "unconfined": _unconfined,
    "ENOSPC": _full,
    "ENOSPC with status 1": _refused,
    "killed": _killed,
    "killed when it was done": _killed_late,
    "timed out": _late,
}


@dataclass
class FailingGit:
    """Counts git commands, and has one of them fail.

    `fails`: which command, from now on (0: none), or the only commands that count, by name.
    """

    kind: str = "EAGAIN"
    fails: int = 0
    named: str = ""
    again: bool = False
    """Whether all further ones fail, too."""
    count: int = 0
    failed: list[str] = field(default_factory=list)

    def __call__(self, command: str, *how: Any) -> GitResult:
        if self.named and self.named not in command:
            return COMMUNICATE(command, *how)
        self.count += 1
        if not self.fails or self.count < self.fails or (self.failed and not self.again):
            return COMMUNICATE(command, *how)
        self.failed.append(command)
        return KINDS[self.kind](command, *how)

    def begin(self, kind: str, fails: int, named: str = "", *, again: bool = False) -> None:
        """From now on, the command of this number fails."""
        self.kind, self.fails, self.named, self.again, self.count, self.failed = kind, fails, named, again, 0, []

    def end(self) -> int:
        """No command fails any more; how many there were."""
        self.fails = 0
        return self.count


@contextmanager
def failing_git(patch: pytest.MonkeyPatch) -> Iterator[FailingGit]:
    """Git as it is, of which tests have a command fail."""
    git = FailingGit()
    with patch.context() as here:
        here.setattr(run, "_communicate", git)
        yield git
