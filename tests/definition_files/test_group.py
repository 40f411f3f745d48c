"""Several definitions are changed together, or none of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.definition_files.conftest import everything
from tests.small_disk import fill, small_disk
from workbench.definition_files.directory import DefinitionDirectory
from workbench.definition_files.group import Replacement, replace_together
from workbench.definition_files.journal import PRIVATE
from workbench.errors import Unavailable
from workbench.rules.definitions.model import Definition, PromptEntry


def definition(name: str, prompt: str = "version 1") -> Definition:
    rules = [PromptEntry(name=prompt[:10].replace(" ", "-"), text=prompt)]
    return Definition.model_validate({"metadata": {"id": name, "name": name}, "prompt": prompt, "rules": rules})


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """The directory of two definitions: `a` and `b`."""
    for name in "ab":
        DefinitionDirectory(tmp_path / "agents" / name).create(definition(name))
    return tmp_path / "agents"


def changes(agents: Path, prompt: str = "version 2") -> list[Replacement]:
    """Change `b`, create `c`, remove `a`."""
    return [
        Replacement(DefinitionDirectory(agents / "b"), definition("b"), definition("b", prompt)),
        Replacement(DefinitionDirectory(agents / "c"), None, definition("c", prompt)),
        Replacement(DefinitionDirectory(agents / "a"), definition("a"), None),
    ]


def private(agents: Path) -> set[str]:
    """The private files, without locks."""
    return {path.name for path in (agents / PRIVATE).rglob("*") if path.is_file()} - {"lock", ".gitignore"}


def test_definitions_are_changed_created_and_removed_together(agents: Path) -> None:
    assert replace_together(changes(agents))
    assert DefinitionDirectory(agents / "b").read().definition == definition("b", "version 2")
    assert DefinitionDirectory(agents / "c").read().definition == definition("c", "version 2")
    assert not (agents / "a").exists()
    assert private(agents) == set()


@pytest.mark.parametrize(
    "disturb",
    [
        lambda agents: DefinitionDirectory(agents / "b").change(lambda old: old.model_copy(update={"prompt": "other"})),
        lambda agents: (agents / "a" / "prompt.md").write_text("edited\n"),
        lambda agents: DefinitionDirectory(agents / "a").remove(),
        lambda agents: DefinitionDirectory(agents / "c").create(definition("c", "mine")),
        lambda agents: ((agents / "c").mkdir(), (agents / "c" / "notes.txt").write_text("mine")),
    ],
)
def test_a_group_changes_nothing_if_one_definition_was_edited_meanwhile(
    agents: Path, disturb: Callable[[Path], Any]
) -> None:
    disturb(agents)
    before = everything(agents)
    assert not replace_together(changes(agents))
    assert everything(agents) == before
    assert private(agents) == set()


def test_an_edit_in_the_last_moment_is_not_lost(agents: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = DefinitionDirectory.is_at

    def edited_before(self: DefinitionDirectory, *arguments: Any) -> bool:
        (agents / "b" / "prompt.md").write_text("edited\n")
        return check(self, *arguments)

    monkeypatch.setattr(DefinitionDirectory, "is_at", edited_before)
    before = everything(agents)
    assert not replace_together(changes(agents))
    assert everything(agents) == before | {"b/prompt.md": b"edited\n"}


def test_files_that_are_equal_already_are_not_rewritten(agents: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in agents.rglob("*.md")}
    same = [Replacement(DefinitionDirectory(agents / name), definition(name), definition(name)) for name in "ab"]
    assert replace_together(same)
    assert {path: path.stat().st_mtime_ns for path in agents.rglob("*.md")} == before


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 2) as disk:
        for name in "ab":
            DefinitionDirectory(disk / "agents" / name).create(definition(name))
        before = everything(disk)
        fill(disk, but=40_000)
        with pytest.raises(Unavailable, match="PROJECT_UNWRITABLE"):
            replace_together(changes(disk / "agents", "x" * 30_000))
        (disk / "filler").unlink()
        assert everything(disk) == before
        assert private(disk / "agents") == set()


def test_groups_that_overlap_do_not_wait_for_each_other(agents: Path) -> None:
    made: list[bool] = []

    def both(order: str, number: int) -> None:
        while True:
            now = {name: DefinitionDirectory(agents / name).read().definition for name in order}
            prompt = f"version {number} {order}"
            wanted = [
                Replacement(DefinitionDirectory(agents / name), now[name], definition(name, prompt)) for name in order
            ]
            if replace_together(wanted):
                made.append(True)
                return

    threads = [Thread(target=both, args=("ab" if n % 2 else "ba", n), daemon=True) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(made) == 8
    assert len({DefinitionDirectory(agents / name).read().definition.prompt for name in "ab"}) == 1
