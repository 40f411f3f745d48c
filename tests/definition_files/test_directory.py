"""The directory of a definition: whole at every moment, despite editors, git, other processes and a full disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import git
from tests.definition_files.conftest import everything
from tests.given import refused
from tests.small_disk import fill, small_disk
from workbench.definition_files.directory import DefinitionDirectory
from workbench.definition_files.journal import PRIVATE
from workbench.errors import BadInput, Conflict, WorkbenchError
from workbench.rules.definitions import layout
from workbench.rules.definitions.model import Definition, ExportedTool, PromptEntry

READER = Definition.model_validate(
    {"metadata": {"id": "reader", "name": "Reader"}, "prompt": "Read.", "rules": [{"name": "cite", "text": "Cite."}]}
)
Happening = Callable[[Path], object]


@pytest.fixture
def directory(tmp_path: Path) -> DefinitionDirectory:
    """A definition with a rule."""
    made = DefinitionDirectory(tmp_path / "agents" / "reader")
    made.create(READER)
    return made


def add(name: str, text: str = "Added.") -> Callable[[Definition], Definition]:
    """A change that adds a rule, if there is none of that name."""

    def edit(old: Definition) -> Definition:
        if name in rules(old):
            raise Conflict("ALREADY_EXISTS", name)
        return old.model_copy(update={"rules": [*old.rules, PromptEntry(name=name, text=text)]})

    return edit


def meanwhile(happening: Happening, path: Path) -> Callable[[Definition], Definition]:
    """A change that adds a rule; while it is made for the first time, something else happens to the directory."""
    left = [happening]

    def edit(old: Definition) -> Definition:
        if left:
            left.pop()(path)
        return add("added")(old)

    return edit


def rules(definition: Definition) -> dict[str, str]:
    return {rule.name: rule.text for rule in definition.rules}


def private(directory: DefinitionDirectory) -> list[str]:
    """The files left beside a definition."""
    return sorted(path.name for path in (directory.path.parent / PRIVATE / directory.path.name).iterdir())


def test_a_definition_directory_is_created_read_and_removed_whole(directory: DefinitionDirectory) -> None:
    assert directory.read().definition == READER
    assert sorted(everything(directory.path)) == ["agent.yaml", "prompt.md", "rules/cite.md"]
    assert (directory.path.parent / PRIVATE / ".gitignore").read_text() == "*\n"
    refused("AGENT_EXISTS", directory.create, READER)
    assert directory.remove() == []
    assert not directory.path.exists()


def test_a_change_that_fails_changes_nothing(directory: DefinitionDirectory) -> None:
    def fail(old: Definition) -> Definition:
        raise BadInput("VALIDATION_ERROR", "No.")

    before = everything(directory.path)
    refused("VALIDATION_ERROR", directory.change, fail)
    assert everything(directory.path) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_left_as_it_was(directory: DefinitionDirectory) -> None:
    (directory.path.parent / PRIVATE / "reader").chmod(0o500)
    before = everything(directory.path)
    refused("PROJECT_UNWRITABLE", directory.change, add("a"))
    assert everything(directory.path) == before


@pytest.mark.parametrize("name", ["agent.yaml", "prompt.md", "rules/cite.md", "rules"])
def test_no_link_is_followed(directory: DefinitionDirectory, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    (outside / "rules").mkdir(parents=True)
    link = directory.path / name
    if link.is_dir():
        (link / "cite.md").unlink()
        link.rmdir()
    else:
        link.rename(outside / "file")
    link.symlink_to(outside / "rules" if name == "rules" else outside / "file")
    refused("INVALID_PATH", directory.read)
    refused("INVALID_PATH", directory.change, add("b"))
    assert list((outside / "rules").iterdir()) == []


@pytest.mark.parametrize(
    "journal",
    [
        '{"replace": {"../../escaped": "0123456789abcdef"}, "remove": []}',
        '{"replace": {"rules/a.md": "../../x"}, "remove": []}',
        '{"replace": {}, "remove": ["../notes.txt"]}',
        '{"replace": {}, "remove": ["prompt.md"]}',
        "nonsense",
    ],
)
def test_a_journal_that_came_from_elsewhere_is_not_followed(directory: DefinitionDirectory, journal: str) -> None:
    private = directory.path.parent / PRIVATE / "reader"
    (private / "0123456789abcdef").write_text("x")
    (directory.path.parent / "notes.txt").write_text("mine")
    (private / "journal.json").write_text(journal)
    assert directory.read().definition == READER
    assert {path.name for path in private.iterdir()} == {"lock"}
    assert (directory.path.parent / "notes.txt").exists()
    assert not (directory.path.parent.parent / "escaped").exists()


# Files that change between reading and writing


def writes(name: str, text: str) -> Happening:
    """Write into a file, as some editors do."""
    return lambda path: (path / name).write_text(text)


def removes(name: str) -> Happening:
    return lambda path: (path / name).unlink()


def by_replacement(path: Path) -> None:
    """Replace a file by one of the same length and time, as some editors do."""
    target, fresh = path / "rules" / "cite.md", path / "rules" / "cite.md~"
    info, text = target.stat(), target.read_text().replace("Cite.", "Read.")
    fresh.write_text(text)
    os.utime(fresh, ns=(info.st_atime_ns, info.st_mtime_ns))
    fresh.replace(target)


@pytest.mark.parametrize(
    ("happening", "expected"),
    [
        (writes("rules/cite.md", "Never."), {"cite": "Never."}),
        (by_replacement, {"cite": "Read."}),
        (removes("rules/cite.md"), {}),
        (writes("rules/own.md", "Mine."), {"cite": "Cite.", "own": "Mine."}),
    ],
)
def test_an_edit_made_during_a_change_is_kept(
    directory: DefinitionDirectory, happening: Happening, expected: dict[str, str]
) -> None:
    definition = directory.change(meanwhile(happening, directory.path)).definition
    assert rules(definition) == rules(directory.read().definition) == expected | {"added": "Added."}


def test_a_rule_that_an_editor_creates_in_the_middle_of_a_change_is_not_replaced(
    directory: DefinitionDirectory,
) -> None:
    refused("ALREADY_EXISTS", directory.change, meanwhile(writes("rules/added.md", "Mine."), directory.path))
    assert rules(directory.read().definition) == {"cite": "Cite.", "added": "Mine."}


@pytest.mark.parametrize(
    ("happening", "code"),
    [(writes("agent.yaml", "metadata: ["), "INVALID_CONFIGURATION"), (removes("agent.yaml"), "AGENT_NOT_FOUND")],
)
def test_a_definition_that_becomes_unreadable_during_a_change_is_left_alone(
    directory: DefinitionDirectory, happening: Happening, code: str
) -> None:
    refused(code, directory.change, meanwhile(happening, directory.path))
    assert "rules/added.md" not in everything(directory.path)
    assert private(directory) == ["lock"]


@pytest.mark.parametrize("linked", ["rules", "."])
def test_a_link_that_appears_during_a_change_is_not_followed(
    directory: DefinitionDirectory, tmp_path: Path, linked: str
) -> None:
    outside = tmp_path / "outside"

    def link(path: Path) -> None:
        (path / linked).rename(outside)
        (path / linked).symlink_to(outside)

    refused("INVALID_PATH", directory.change, meanwhile(link, directory.path))
    before = everything(outside)
    for call in (directory.read, directory.remove):
        refused("INVALID_PATH", call)
    assert everything(outside) == before
    assert not any("added" in name for name in before)


def test_a_branch_checked_out_during_a_change_is_the_one_that_is_changed(repository: Path) -> None:
    directory = DefinitionDirectory(repository / "agents" / "reader")
    directory.create(READER)
    git("add", "agents", cwd=repository)
    git("commit", "-q", "-m", "One", cwd=repository)
    git("checkout", "-q", "-b", "other", cwd=repository)
    directory.change(
        lambda old: old.model_copy(update={"prompt": "Other.", "rules": [PromptEntry(name="b", text="B.")]})
    )
    git("add", "agents", cwd=repository)
    git("commit", "-q", "-m", "Two", cwd=repository)

    def check_out(path: Path) -> None:
        git("checkout", "-q", "main", cwd=repository)

    changed = directory.change(meanwhile(check_out, directory.path)).definition
    assert (changed.prompt, rules(changed)) == ("Read.", {"cite": "Cite.", "added": "Added."})
    assert git("status", "--porcelain", cwd=repository) == "?? agents/reader/rules/added.md"


# What else is in the directory

EDITORS = {
    ".prompt.md.swp": b"b0VIM \xff",
    "prompt.md~": b"Old.",
    "4913": b"",
    "rules/.cite.md.swp": b"b0VIM \xff",
    "rules/cite.md~": b"---\n: [",
    "rules/#cite.md#": b"---\n: [",
    "rules/.~cite.md": b"\xff\xfe",
    "rules/._cite.md": b"\x00\x05\x16\x07",
}


def with_files_of_editors(path: Path) -> None:
    """Add what editors leave beside a file that is open in them, and what a file manager leaves."""
    for name, content in EDITORS.items():
        (path / name).write_bytes(content)
    (path / "rules" / ".#cite.md").symlink_to("person@host.1234:1700000000")


def test_files_of_editors_are_no_part_of_a_definition_and_stay(directory: DefinitionDirectory) -> None:
    with_files_of_editors(directory.path)
    before = everything(directory.path)
    assert directory.read().definition == READER
    directory.change(add("added"))
    assert everything(directory.path).items() >= before.items()
    assert directory.remove() == sorted([*EDITORS, "rules/.#cite.md"], key=lambda name: ("/" in name, name))
    assert {name: (directory.path / name).read_bytes() for name in EDITORS} == EDITORS


def test_a_deletion_names_each_foreign_directory_once_and_shows_no_control_characters(
    directory: DefinitionDirectory,
) -> None:
    for name in ("data/a/b", "rules/sub", "references"):
        (directory.path / name).mkdir(parents=True, exist_ok=True)
    for name in ("data/a/b/c.txt", "rules/sub/x.md", "references/\x1b[31m.txt"):
        (directory.path / name).write_text("Mine.")
    (directory.path / "references" / os.fsdecode(b"\xff.md")).write_text("Mine.")
    left = ["data", "rules/sub", "references/\\x1b[31m.txt", "references/\\udcff.md"]
    assert directory.foreign() == left
    assert directory.remove() == left
    assert set(everything(directory.path)) >= {"data/a/b/c.txt", "rules/sub/x.md", "references/\x1b[31m.txt"}


@pytest.mark.parametrize("content", [b"\xff", b"x" * 2_000_000, b"---\n- ["], ids=["no text", "large", "invalid"])
def test_a_definition_that_cannot_be_read_can_be_removed(directory: DefinitionDirectory, content: bytes) -> None:
    (directory.path / "rules" / "cite.md").write_bytes(content)
    refused("INVALID_CONFIGURATION", directory.read)
    assert directory.remove() == []
    assert not directory.path.exists()


def test_a_file_in_place_of_a_folder_is_left_alone(directory: DefinitionDirectory) -> None:
    directory.change(lambda old: old.model_copy(update={"rules": []}))
    (directory.path / "rules").rmdir()
    (directory.path / "rules").write_text("Mine.")
    before = everything(directory.path)
    refused("PROJECT_UNWRITABLE", directory.change, add("added"))
    assert everything(directory.path) == before
    assert private(directory) == ["lock"]


def test_a_definition_that_could_not_be_read_again_is_not_written(directory: DefinitionDirectory) -> None:
    tools = [ExportedTool(name=f"t{n}", parameters={"type": "object"}, prompt="x" * 190_000) for n in range(6)]
    cite = PromptEntry(name="CITE", text="x")
    before = everything(directory.path)
    for update, code in (
        ({"tools": tools}, "VALIDATION_ERROR"),
        ({"rules": [cite, *READER.rules]}, "INVALID_CONFIGURATION"),
    ):
        refused(code, directory.change, lambda old, update=update: old.model_copy(update=update))
        assert everything(directory.path) == before


def test_a_file_that_others_may_not_read_stays_so(directory: DefinitionDirectory) -> None:
    (directory.path / "agent.yaml").chmod(0o600)
    directory.change(lambda old: old.model_copy(update={"metadata": old.metadata.model_copy(update={"version": "2"})}))
    assert (directory.path / "agent.yaml").stat().st_mode & 0o777 == 0o600


# What is beside it


@pytest.mark.parametrize("linked", [PRIVATE, f"{PRIVATE}/reader"])
def test_a_link_in_place_of_the_journals_is_not_followed(
    directory: DefinitionDirectory, tmp_path: Path, linked: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "notes.txt").write_text("mine")
    place = directory.path.parent / linked
    place.rename(tmp_path / "before")
    place.symlink_to(outside)
    refused("INVALID_PATH", directory.change, add("added"))
    assert everything(outside) == {"notes.txt": b"mine"}
    assert directory.read().definition == READER


def test_a_journal_is_not_carried_out_through_a_link(directory: DefinitionDirectory, tmp_path: Path) -> None:
    (directory.path / "rules").rename(tmp_path / "outside")
    (directory.path / "rules").symlink_to(tmp_path / "outside")
    journal = directory.path.parent / PRIVATE / "reader" / "journal.json"
    journal.touch(0o600)
    journal.write_text('{"replace": {}, "remove": ["rules/cite.md"]}')
    refused("INVALID_PATH", directory.read)
    assert (tmp_path / "outside" / "cite.md").exists()
    (directory.path / "rules").unlink()
    (tmp_path / "outside").rename(directory.path / "rules")
    assert directory.read().definition.rules == []


# A full disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    with small_disk(tmp_path / "disk", 2) as place:
        yield place


def much(old: Definition) -> Definition:
    """A change of several files, some of them large."""
    added = [PromptEntry(name=f"r{number}", text=str(number) * 50_000) for number in range(4)]
    return old.model_copy(update={"prompt": "New.", "rules": added})


@pytest.mark.parametrize("free", [0, 4_096, 8_192, 60_000, 120_000, 200_000, 206_000, 212_000, 240_000])
def test_on_a_full_disk_a_definition_is_the_old_or_the_new_one(disk: Path, free: int) -> None:
    directory = DefinitionDirectory(disk / "agents" / "reader")
    directory.create(READER)
    fill(disk, free)
    try:
        directory.change(much)
    except WorkbenchError as error:
        assert error.code == "PROJECT_UNWRITABLE"
        assert "No space left on device" in error.message
        assert directory.read().definition == READER
        assert private(directory) == ["lock"]
        (disk / "filler").unlink()
        directory.change(much)
    assert directory.read().definition == much(READER)


def test_on_a_full_disk_nothing_is_created(disk: Path) -> None:
    directory = DefinitionDirectory(disk / "agents" / "reader")
    fill(disk, 0)
    refused("PROJECT_UNWRITABLE", directory.create, READER)
    assert not (directory.path / layout.AGENT).exists()
    (disk / "filler").unlink()
    directory.create(READER)
    assert directory.read().definition == READER


def test_a_byte_order_mark_and_line_endings_of_windows_change_nothing(directory: DefinitionDirectory) -> None:
    expected = directory.read()
    for name in everything(directory.path):
        path = directory.path / name
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    found = directory.read()
    assert (found.definition, found.hash) == (READER, expected.hash)
    before = everything(directory.path)
    directory.change(add("added"))
    assert everything(directory.path).items() >= before.items()
