"""Definitions in older layouts: found and read like all others, refused to be changed, converted without a loss."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.definition_files.conftest import everything
from tests.given import refused
from tests.rules.definitions.test_older import FILES, YAML
from workbench.definition_files import DefinitionDirectory, Registry
from workbench.definition_files.journal import Journal
from workbench.definition_files.migration import Migration, prepare
from workbench.definition_files.older import LARGEST
from workbench.model import uuid7
from workbench.rules.definitions.conversion import Converted
from workbench.rules.definitions.layout import AGENT
from workbench.rules.definitions.names import is_id
from workbench.rules.definitions.older import JSON_AGENT, parse
from workbench.rules.yaml_text import write

NAME = "Optimizer Agent"
AS_DIRECTORY = {f"finder/{name}": text for name, text in FILES.items()}
AS_FILE = {"finder.yaml": write(YAML)}
AS_YAML_IN_DIRECTORY = {"finder/tsagent.yaml": write(YAML)}
every_layout = pytest.mark.parametrize("files", [AS_DIRECTORY, AS_FILE, AS_YAML_IN_DIRECTORY])


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """The root of the definitions."""
    made = tmp_path / "agents"
    made.mkdir()
    return made


@pytest.fixture
def registry(agents: Path) -> Registry:
    """The definitions below it."""
    return Registry(agents.parent, [agents])


def put(agents: Path, files: dict[str, str]) -> None:
    """Write files."""
    for name, text in files.items():
        (agents / name).parent.mkdir(parents=True, exist_ok=True)
        (agents / name).write_bytes(text.encode())


def texts(agents: Path) -> dict[str, str]:
    """All visible files below the root."""
    return {name: content.decode() for name, content in everything(agents).items()}


def migrate(registry: Registry, target: str, to: str | None, *, keep: bool) -> Migration:
    """Convert a definition."""
    return prepare(registry, target, to, keep=keep, unused=str(uuid7(0))).make(registry)


def paths(registry: Registry) -> list[str]:
    listing = registry.listing()
    assert listing.problems == []
    return [registry.display_path(path) for path, _ in listing.found]


@every_layout
def test_an_older_definition_is_read_and_not_changed(agents: Path, registry: Registry, files: dict[str, str]) -> None:
    put(agents, files)
    (path,) = paths(registry)
    assert path == ("./agents/finder.yaml" if files is AS_FILE else "./agents/finder")
    for target in (NAME, path):
        snapshot = registry.get(target)
        assert (snapshot.definition.metadata.id, snapshot.definition.prompt) == ("finder", "You find tools.")
        assert registry.get(target) is snapshot or not snapshot.is_settled
    error = refused("OLDER_LAYOUT", registry.change, registry.find(NAME), lambda old: old)
    assert "Convert it with agent_migrate first" in error.message
    refused("OLDER_LAYOUT", registry.remove, registry.find(NAME))
    assert texts(agents) == files


def test_an_edit_of_an_older_definition_is_noticed(agents: Path, registry: Registry) -> None:
    put(agents, AS_DIRECTORY)
    registry.get(NAME)
    put(agents, {"finder/rules/new.mdt": "New."})
    assert [rule.name for rule in registry.get(NAME).definition.rules] == ["cite", "new", "plain"]


def test_files_that_only_look_like_one_are_no_definitions(agents: Path, registry: Registry) -> None:
    put(agents, {"compose.yaml": "services: {}\n", "notes/a.yml": "# metadata:\n", ".b.yaml": "metadata:\n"})
    (agents / "c.yaml").symlink_to(agents / "compose.yaml")
    os.mkfifo(agents / "d.yaml")
    assert paths(registry) == []


def test_a_link_in_the_place_of_a_file_is_not_followed(agents: Path, registry: Registry) -> None:
    put(agents, AS_DIRECTORY | {"../secret.mdt": "secret"})
    (agents / "finder/rules/leak.mdt").symlink_to(agents.parent / "secret.mdt")
    refused("INVALID_PATH", registry.get, "./agents/finder")
    (agents / "finder/rules/leak.mdt").unlink()
    (agents / "finder/refs/terms.mdt").unlink()
    (agents / "finder/refs").rmdir()
    (agents / "finder/refs").symlink_to(agents.parent)
    refused("INVALID_PATH", registry.get, "./agents/finder")


def test_vectors_make_a_file_large_and_are_read_but_not_without_a_limit(agents: Path, registry: Registry) -> None:
    rule = {"name": "cite", "text": "Cite.", "embeddings": [[0.125] * 1_000] * 150}
    put(agents, {"finder.yaml": json.dumps(YAML | {"rules": [rule]})})
    assert (agents / "finder.yaml").stat().st_size > 1 << 20
    assert registry.get("./agents/finder.yaml").definition.rules[0].text == "Cite."
    put(agents, {"finder.yaml": "#" * (LARGEST + 1)})
    refused("INVALID_CONFIGURATION", registry.get, "./agents/finder.yaml")


# Converting.


def convert(files: dict[str, str]) -> Converted:
    """The content of a definition's files."""
    (root,) = {name.partition("/")[0] for name in files if "/" in name} or {""}
    below = {name.removeprefix(f"{root}/"): text for name, text in files.items()}
    agent = next(name for name in (JSON_AGENT, "tsagent.yaml", "finder.yaml") if name in below)
    return parse(agent, below, "finder")


@pytest.mark.parametrize("keep", [True, False])
@every_layout
def test_a_migrated_definition_equals_the_older_one(
    agents: Path, registry: Registry, files: dict[str, str], keep: bool
) -> None:
    put(agents, files | {"finder/README.txt": "mine"})
    if files is AS_FILE:
        (agents / "finder/README.txt").unlink()
        (agents / "finder").rmdir()
    migration = migrate(registry, NAME, None, keep=keep)
    definition = convert(files).definition
    identified = definition.metadata.model_copy(update={"id": migration.after.definition.metadata.id})
    assert is_id(identified.id)
    assert f"metadata.id: 'finder' is {identified.id} now." in migration.changed
    assert migration.after.definition == definition.model_copy(update={"metadata": identified})
    assert paths(registry) == ["./agents/finder"]
    assert registry.get(NAME) == migration.after
    after = texts(agents)
    assert {name for name in files if name in after} == {name for name in files if keep or name == "finder/prompt.md"}
    assert registry.change(registry.find(NAME), lambda old: old).after.definition == migration.after.definition
    assert all(after[name] == text for name, text in files.items() if keep)
    assert after.get("finder/README.txt", "mine") == "mine"


class Killed(BaseException):
    """An exception that ends a process amid a change."""


def test_the_next_reader_finishes_an_interrupted_conversion_or_removal(
    agents: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(agents, AS_DIRECTORY)
    with monkeypatch.context() as killed:
        killed.setattr(Journal, "_finish", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            migrate(registry, NAME, None, keep=False)
    assert paths(registry) == ["./agents/finder"]
    assert (agents / "finder" / AGENT).exists()
    (agents / "finder" / JSON_AGENT).unlink()
    removed: list[Path] = []

    def unlink(path: Path, *, missing_ok: bool = False) -> None:
        if removed and path.name != "journal.json":
            raise Killed
        removed.append(path)
        os.unlink(path)

    found = registry.find(NAME)
    with monkeypatch.context() as killed:
        killed.setattr(Path, "unlink", unlink)
        with pytest.raises(Killed):
            registry.remove(found)
    assert [path.name for path in removed] != [AGENT]
    refused("AGENT_NOT_FOUND", registry.read, registry.find(NAME))
    assert paths(registry) == []
    assert [name for name in texts(agents) if name.endswith((".md", AGENT))] == []


def test_a_definition_migrated_to_another_directory_gets_a_new_id(agents: Path, registry: Registry) -> None:
    put(agents, AS_FILE)
    migration = migrate(registry, NAME, "./agents/deep/new", keep=True)
    assert is_id(migration.after.definition.metadata.id)
    assert paths(registry) == ["./agents/deep/new", "./agents/finder.yaml"]
    assert len(refused("AMBIGUOUS_TARGET", registry.find, NAME).details["candidates"]) == 2
    migrate(registry, "./agents/finder.yaml", "./agents/other", keep=False)
    assert paths(registry) == ["./agents/deep/new", "./agents/other"]


@every_layout
def test_a_migration_leaves_only_foreign_files_behind(agents: Path, registry: Registry, files: dict[str, str]) -> None:
    put(agents, files)
    migrate(registry, NAME, "./agents/new", keep=False)
    assert {path.name for path in agents.iterdir()} == {".workbench", "new"}
    put(agents, files | {"finder/mine.txt": "mine"})
    migrate(registry, "./agents/finder.yaml" if files is AS_FILE else "./agents/finder", "./agents/other", keep=False)
    assert {name for name in texts(agents) if name.startswith("finder")} == {"finder/mine.txt"}


def test_old_files_stay_if_anything_would_be_lost_with_them(agents: Path, registry: Registry) -> None:
    files = {"finder.yaml": write(YAML | {"supervisors": [{"name": "guardian"}]})}
    put(agents, files)
    error = refused("MIGRATION_INCOMPLETE", migrate, registry, NAME, None, keep=False)
    assert error.details == {"left_out": ["supervisors"]}
    assert texts(agents) == files
    assert migrate(registry, NAME, None, keep=True).left_out == ("supervisors",)
    assert texts(agents)["finder.yaml"] == files["finder.yaml"]


@pytest.mark.parametrize(
    ("files", "name"),
    [(AS_DIRECTORY, "rules/mine.md"), (AS_DIRECTORY, "references/a.md"), (AS_YAML_IN_DIRECTORY, "prompt.md")],
)
def test_a_migration_keeps_files_that_would_become_part_of_the_definition(
    agents: Path, registry: Registry, files: dict[str, str], name: str
) -> None:
    put(agents, files | {f"finder/{name}": "mine"})
    before = texts(agents)
    error = refused("AGENT_EXISTS", migrate, registry, NAME, None, keep=True)
    assert error.message.startswith(f"{name} would be")
    assert texts(agents) == before


def test_a_taken_directory_a_wrong_path_and_a_current_layout_are_refused(agents: Path, registry: Registry) -> None:
    put(agents, AS_FILE | {"finder/notes.txt": "x"})
    refused("AGENT_EXISTS", migrate, registry, NAME, None, keep=True)
    refused("INVALID_PATH", migrate, registry, NAME, "../out", keep=True)
    for target in ("missing", "./agents/missing", str(agents / "missing")):
        refused("AGENT_NOT_FOUND", migrate, registry, target, None, keep=True)
        refused("AGENT_NOT_FOUND", migrate, registry, target, "./agents/new", keep=True)
    migrate(registry, NAME, "./agents/new", keep=False)
    refused("NOTHING_TO_MIGRATE", migrate, registry, NAME, None, keep=True)


def test_nothing_new_is_made_in_the_directory_of_an_older_definition(agents: Path, registry: Registry) -> None:
    put(agents, AS_DIRECTORY)
    refused("AGENT_EXISTS", registry.vacant, "./agents/finder/inner")
    refused("AGENT_EXISTS", registry.vacant, "./agents/finder")
    assert not DefinitionDirectory(agents / "finder").is_unfinished()
    assert AGENT not in os.listdir(agents / "finder")
