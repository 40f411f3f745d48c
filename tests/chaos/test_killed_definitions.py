"""`kill -9` of a process that changes a definition: its files are those before the change or after it, all of them.

Run as a program, this file starts such processes: one for each line that it reads.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TextIO

import pytest

from tests.conftest import Child, ended
from workbench.definitions.directory import Directory
from workbench.definitions.journal import PRIVATE
from workbench.errors import NotFound
from workbench.rules.definitions.model import Definition, Entry

READER = Definition.model_validate({"metadata": {"id": "reader", "name": "Reader"}, "prompt": "version 0"})
CHANGES = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"})
"""The audit events of what changes files, and of opening them."""


def version(number: int) -> Definition:
    """A definition whose files differ from those of the version before: some changed, some created, some removed."""
    text = f"version {number}"
    entries = [Entry(name=name, text=text) for name in "abcd"[number % 3 : number % 3 + 2]]
    return READER.model_copy(update={"prompt": text, "rules": entries, "references": entries if number % 4 else []})


ACTIONS: dict[str, tuple[int | None, int | None, Callable[[Directory], object]]] = {
    "create": (None, 1, lambda directory: directory.create(version(1))),
    "change": (1, 2, lambda directory: directory.change(lambda _: version(2))),
    "remove": (1, None, lambda directory: directory.remove()),
}
"""What is done to a definition, with its version before and after."""


def version_of(directory: Directory) -> int | None:
    """The number of the version in a directory, which is whole; None if there is none."""
    try:
        definition = directory.read().definition
    except NotFound:
        return None
    number = int(definition.prompt.removeprefix("version "))
    assert definition == (version(number) if number else READER)
    return number


def write_without_end(path: Path, number: int) -> None:
    """Write one version after another; a line with the process id and the number for each that is written."""
    for following in itertools.count(number + 1):
        Directory(path).change(lambda _, wanted=version(following): wanted)
        os.write(1, b"%d %d\n" % (os.getpid(), following))


def stop_at(path: Path, action: str, step: int) -> None:
    """Do something, and kill this process just before it changes or opens a file for that time."""
    steps = itertools.count(1)

    def kill(event: str, _: object) -> None:
        if event in CHANGES and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(kill)
    ACTIONS[action][2](Directory(path))
    os._exit(0)


def start(path: Path) -> None:
    """Start a process for each line: `write NUMBER`, or `ACTION STEP`, whose status is printed."""
    for line in sys.stdin:
        what, number = line.split()
        if (pid := os.fork()) == 0:
            write_without_end(path, int(number)) if what == "write" else stop_at(path, what, int(number))
        if what != "write":
            os.write(1, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


@pytest.mark.chaos
@pytest.mark.parametrize("action", ACTIONS)
def test_a_definition_is_the_old_or_the_new_one_at_whatever_step_its_writer_is_killed(
    child: Child, tmp_path: Path, action: str
) -> None:
    directory, (before, after, _) = Directory(tmp_path / "agents" / "reader"), ACTIONS[action]
    processes, found = child(__file__, directory.path), set[int | None]()
    for step in itertools.count(1):
        restore(directory, before)
        print(action, step, file=processes.stdin)
        status = int(processes.stdout.readline())
        now = version_of(directory)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        assert now in (before, after)
        found.add(now)
    assert now == after
    assert found == {before, after}


def restore(directory: Directory, number: int | None) -> None:
    """Let a directory contain a version, or none."""
    if version_of(directory) is not None:
        directory.remove()
    if number is not None:
        directory.create(version(number))


def written(lines: TextIO, dead: set[int], count: int) -> tuple[int, int]:
    """Wait until the present writer has written so many versions; its process id, and the number of the last one."""
    while count:
        pid, number = map(int, lines.readline().split())
        count -= pid not in dead
    return pid, number


@pytest.mark.anyio
@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(10, id="short"),
        pytest.param(200, id="long", marks=[pytest.mark.chaos, pytest.mark.timeout(600)]),
    ],
)
async def test_a_definition_is_the_old_or_the_new_one_whenever_its_writer_is_killed(
    child: Child, tmp_path: Path, kills: int
) -> None:
    directory, random, number = Directory(tmp_path / "agents" / "reader"), Random(kills), 0
    directory.create(READER)
    processes, dead = child(__file__, directory.path), set[int]()
    for _ in range(kills):
        print("write", number, file=processes.stdin)
        pid, known = written(processes.stdout, dead, random.randrange(1, 4))
        for _ in range(random.randrange(8)):
            known = max(known, version_of(directory) or 0)
        os.kill(pid, signal.SIGKILL)
        dead.add(pid)
        await ended(pid)
        number = version_of(directory) or 0
        assert number >= known
    with directory.locked():
        assert [path.name for path in (directory.path.parent / PRIVATE / "reader").iterdir()] == ["lock"]


if __name__ == "__main__":
    start(Path(sys.argv[1]))
