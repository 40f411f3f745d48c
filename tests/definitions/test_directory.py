"""The directory of a definition: whole at every moment, whoever writes to it and whatever is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.definitions.directory import Directory
from workbench.definitions.journal import PRIVATE
from workbench.errors import BadInput, WorkbenchError
from workbench.rules.definitions.model import Definition, Entry

READER = Definition.model_validate({"metadata": {"id": "reader", "name": "Reader"}})
ADDS = """
import sys
from pathlib import Path
from workbench.definitions import Directory
from workbench.rules.definitions.model import Entry
for number in range(25):
    rule = Entry(name=f"{sys.argv[2]}-{number}", text="x")
    Directory(Path(sys.argv[1])).change(lambda old: old.model_copy(update={"rules": [*old.rules, rule]}))
"""


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    """A definition."""
    made = Directory(tmp_path / "agents" / "reader")
    made.create(READER)
    return made


def with_rule(name: str) -> Definition:
    return READER.model_copy(update={"rules": [Entry(name=name, text="x")]})


def code_of(call: object) -> str:
    with pytest.raises(WorkbenchError) as caught:
        call()  # type: ignore[operator]
    return caught.value.code


def test_what_is_created_is_read(directory: Directory) -> None:
    assert directory.read().definition == READER
    assert sorted(path.name for path in directory.path.iterdir()) == ["agent.yaml", "prompt.md"]
    assert (directory.path.parent / PRIVATE / ".gitignore").read_text() == "*\n"


def test_nothing_is_created_where_something_is(directory: Directory) -> None:
    assert code_of(lambda: directory.create(READER)) == "AGENT_EXISTS"


@pytest.mark.long
def test_rules_that_two_processes_add_at_once_are_all_there(directory: Directory) -> None:
    adding = [subprocess.Popen([sys.executable, "-c", ADDS, str(directory.path), who]) for who in ("one", "two")]
    assert [process.wait(50) for process in adding] == [0, 0]
    assert len(directory.read().definition.rules) == 50


def test_a_change_that_fails_changes_nothing(directory: Directory) -> None:
    def fail(old: Definition) -> Definition:
        raise BadInput("VALIDATION_ERROR", "No.")

    before = directory.texts()
    assert code_of(lambda: directory.change(fail)) == "VALIDATION_ERROR"
    assert directory.texts() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_left_as_it_was(directory: Directory) -> None:
    (directory.path.parent / PRIVATE / "reader").chmod(0o500)
    before = directory.texts()
    assert code_of(lambda: directory.change(lambda old: with_rule("a"))) == "PROJECT_UNWRITABLE"
    assert directory.texts() == before


def test_a_removed_definition_leaves_what_is_not_its_own(directory: Directory) -> None:
    directory.change(lambda old: with_rule("a"))
    (directory.path / "rules" / "notes.txt").write_text("mine")
    (directory.path / "data").mkdir()
    assert directory.remove() == ["data", "rules/notes.txt"]
    assert code_of(directory.read) == "AGENT_NOT_FOUND"


def test_a_definition_with_nothing_else_is_removed_whole(directory: Directory) -> None:
    directory.change(lambda old: with_rule("a"))
    assert directory.remove() == []
    assert not directory.path.exists()


@pytest.mark.parametrize("name", ["agent.yaml", "prompt.md", "rules/a.md", "rules"])
def test_no_link_is_followed(directory: Directory, tmp_path: Path, name: str) -> None:
    directory.change(lambda old: with_rule("a"))
    outside = tmp_path / "outside"
    (outside / "rules").mkdir(parents=True)
    link = directory.path / name
    if link.is_dir():
        (link / "a.md").unlink()
        link.rmdir()
    else:
        link.rename(outside / "file")
    link.symlink_to(outside / "rules" if name == "rules" else outside / "file")
    assert code_of(directory.read) in ("INVALID_PATH", "INVALID_CONFIGURATION")
    assert code_of(lambda: directory.change(lambda old: with_rule("b"))) in ("INVALID_PATH", "INVALID_CONFIGURATION")
    assert list((outside / "rules").iterdir()) == []


def test_a_file_that_is_too_large_is_refused(directory: Directory) -> None:
    with (directory.path / "prompt.md").open("wb") as file:
        file.truncate(50_000_000)
    assert code_of(directory.read) == "INVALID_CONFIGURATION"


@pytest.mark.parametrize(
    "journal",
    [
        '{"replace": {"../../escaped": "0123456789abcdef"}, "remove": []}',
        '{"replace": {"rules/a.md": "../../x"}, "remove": []}',
        '{"replace": {}, "remove": ["../notes.txt"]}',
        "nonsense",
    ],
)
def test_a_journal_that_came_from_elsewhere_is_not_followed(directory: Directory, journal: str) -> None:
    private = directory.path.parent / PRIVATE / "reader"
    (private / "0123456789abcdef").write_text("x")
    (directory.path.parent / "notes.txt").write_text("mine")
    (private / "journal.json").write_text(journal)
    assert directory.read().definition == READER
    assert {path.name for path in private.iterdir()} == {"lock"}
    assert (directory.path.parent / "notes.txt").exists()
    assert not (directory.path.parent.parent / "escaped").exists()
