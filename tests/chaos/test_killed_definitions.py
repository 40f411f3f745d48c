"""`kill -9` of a process that changes definitions: their files are those before the change or after it, all of them.

Run as a program, this file starts such processes: one for each line that it reads.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO

import pytest

from tests.chance import SOAK, chance
from tests.conftest import Child, ended
from workbench.definition_files.directory import DefinitionDirectory
from workbench.definition_files.group import Replacement, replace_together
from workbench.definition_files.journal import PRIVATE
from workbench.errors import NotFound
from workbench.rules.definitions.model import Definition, PromptEntry

KILLS = 15
"""At so many steps of each change a process is killed; the soak kills at all of them."""

READER = Definition.model_validate({"metadata": {"id": "reader", "name": "Reader"}, "prompt": "version 0"})
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

Versions = Mapping[str, int | None]
"""The number of the version in each directory, by its name; None: it has no definition."""


def version(number: int) -> Definition:
    """A definition whose files differ from those of the version before: some changed, some created, some removed."""
    text = f"version {number}"
    entries = [PromptEntry(name=name, text=text) for name in "abcd"[number % 3 : number % 3 + 2]]
    return READER.model_copy(update={"prompt": text, "rules": entries, "references": entries if number % 4 else []})


TOGETHER: tuple[Versions, Versions] = (
    {"changed": 1, "created": None, "deep/removed": 1},
    {"changed": 2, "created": 2, "deep/removed": None},
)


def change_together(root: Path) -> None:
    """Make the change `TOGETHER`."""
    before, after = ({name: number and version(number) for name, number in one.items()} for one in TOGETHER)
    assert replace_together(
        [Replacement(DefinitionDirectory(root / name), before[name], after[name]) for name in before]
    )


ACTIONS: dict[str, tuple[Versions, Versions, Callable[[Path], object]]] = {
    "create": ({"reader": None}, {"reader": 1}, lambda root: DefinitionDirectory(root / "reader").create(version(1))),
    "change": (
        {"reader": 1},
        {"reader": 2},
        lambda root: DefinitionDirectory(root / "reader").change(lambda _: version(2)),
    ),
    "remove": ({"reader": 1}, {"reader": None}, lambda root: DefinitionDirectory(root / "reader").remove()),
    "together": (*TOGETHER, change_together),
}
"""What is done to definitions, with their versions before and after."""


def version_of(directory: DefinitionDirectory) -> int | None:
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
        DefinitionDirectory(path).change(lambda _, wanted=version(following): wanted)
        os.write(1, b"%d %d\n" % (os.getpid(), following))


def stop_at(root: Path, action: str, step: int) -> None:
    """Do something, and kill this process just before it changes the files for that time; a line with their number."""
    steps = 0

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal steps
        if _changes_files(event, arguments):
            steps += 1
            if steps == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    ACTIONS[action][2](root)
    os.write(1, b"%d\n" % steps)
    os._exit(0)


def _changes_files(event: str, arguments: tuple[object, ...]) -> bool:
    """Whether an audit event announces a change; between two changes it makes no difference when a process dies."""
    match event, arguments:
        case "open", (_, _, int(flags)):
            return bool(flags & WRITES)
        case "os.mkdir", (str(path), *_):
            return not os.path.lexists(path)
    return event in ("os.rename", "os.remove", "os.rmdir")


def start(place: Path) -> None:
    """Start a process for each line: `write NUMBER`, or `ACTION STEP`, for which it prints the signal that ended it."""
    for line in sys.stdin:
        what, number = line.split()
        if (pid := os.fork()) == 0:
            write_without_end(place, int(number)) if what == "write" else stop_at(place / number, what, int(number))
        if what != "write" and (status := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])):
            os.write(1, b"%d\n" % status)


@pytest.mark.chaos
@pytest.mark.parametrize("action", ACTIONS)
def test_a_writer_killed_at_any_step_leaves_the_old_or_the_new_definitions(
    child: Child, tmp_path: Path, action: str
) -> None:
    (before, after, _), random = ACTIONS[action], chance()
    processes = child(__file__, tmp_path)

    def tried(step: int) -> tuple[int, Versions]:
        """The output of a process that is killed at a step, and the versions afterwards."""
        root = tmp_path / str(step)
        restore(root, before)
        print(action, step, file=processes.stdin)
        said = int(processes.stdout.readline())
        names = random.sample([*before], len(before))
        now = {name: version_of(DefinitionDirectory(root / name)) for name in names}
        restore(root, before)
        return said, now

    steps, now = tried(0)
    assert now == after
    chosen = range(1, steps + 1) if SOAK else sorted({1, steps, *random.sample(range(1, steps + 1), KILLS)})
    print(f"killed at {[*chosen]} of {steps} steps")
    found = [tried(step) for step in chosen]
    assert {said for said, _ in found} == {-signal.SIGKILL}
    assert [now for _, now in found if now not in (before, after)] == []
    assert (found[0][1], found[-1][1]) == (before, after)


def restore(root: Path, versions: Versions) -> None:
    """Let directories contain these versions."""
    for name, number in versions.items():
        directory = DefinitionDirectory(root / name)
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


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(10, id="short"),
        pytest.param(200 if SOAK else 30, id="long", marks=[pytest.mark.chaos, pytest.mark.timeout(600)]),
    ],
)
async def test_a_writer_killed_at_any_time_leaves_the_old_or_the_new_definition(
    child: Child, tmp_path: Path, kills: int
) -> None:
    directory, random, number = DefinitionDirectory(tmp_path / "agents" / "reader"), chance(), 0
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
