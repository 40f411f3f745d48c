"""`kill -9` of a process that changes several definitions together: all of them are changed, or none.

Run as a program, this file starts such a process for each line that it reads: the step at which it is killed.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.chaos.test_killed_definitions import CHANGES, version, version_of
from tests.conftest import Child
from workbench.definitions.directory import Directory
from workbench.definitions.group import Replacement, replace_together

BEFORE = {"changed": 1, "created": None, "deep/removed": 1}
AFTER = {"changed": 2, "created": 2, "deep/removed": None}


def directory(root: Path, name: str) -> Directory:
    return Directory(root / name)


def replacements(root: Path) -> list[Replacement]:
    def definition(number: int | None) -> object:
        return None if number is None else version(number)

    return [
        Replacement(directory(root, name), definition(BEFORE[name]), definition(AFTER[name]))  # type: ignore[arg-type]
        for name in BEFORE
    ]


def stop_at(root: Path, step: int) -> None:
    """Change all definitions, and kill this process just before it changes or opens a file for that time."""
    steps, wanted = itertools.count(1), replacements(root)

    def kill(event: str, _: object) -> None:
        if event in CHANGES and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(kill)
    assert replace_together(wanted)
    os._exit(0)


def restore(root: Path) -> None:
    """Let all definitions be as they were before."""
    for name, number in BEFORE.items():
        if version_of(directory(root, name)) is not None:
            directory(root, name).remove()
        if number is not None:
            directory(root, name).create(version(number))


def start(root: Path) -> None:
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            stop_at(root, int(line))
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_all_definitions_are_changed_or_none_at_whatever_step_the_writer_is_killed(
    child: Child, tmp_path: Path
) -> None:
    root = tmp_path / "agents"
    processes, found = child(__file__, root), set[str]()
    for step in itertools.count(1):
        restore(root)
        print(step, file=processes.stdin)
        status = int(processes.stdout.readline())
        now = {name: version_of(directory(root, name)) for name in (BEFORE if step % 2 else reversed(BEFORE))}
        if status == 0:
            break
        assert status == -signal.SIGKILL
        assert now in (BEFORE, AFTER)
        found.add("before" if now == BEFORE else "after")
    assert now == AFTER
    assert found == {"before", "after"}


if __name__ == "__main__":
    start(Path(sys.argv[1]))
