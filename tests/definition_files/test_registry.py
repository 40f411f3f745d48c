"""Definitions are found and cached; no path leads outside the directories where they may be, and no edit is missed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import pytest

from tests.given import refused
from workbench.definition_files.journal import PRIVATE
from workbench.definition_files.registry import Registry
from workbench.errors import WorkbenchError
from workbench.rules.definitions.model import Definition, PromptEntry

HOSTILE = [
    "./agents/" + "a" * 256,
    "./agents/" + "é" * 128,
    "..",
    "../agents-evil",
    "./agents/../../outside",
    "./agents/reviewer/../../../outside",
    "agents/x\0y",
    "agents/\u202egpj.exe",
    "agents/\ud800",
    "agents/a\nb",
    "agents\\..\\..\\outside",
    "./agents/" + "x" * 5_000,
    "",
    "/",
    "/etc",
    "~/agents/x",
    "./agents",
    "./agents-evil/x",
    "./agents/to-outside",
    "./agents/to-outside/x",
    "./agents/to-evil/x",
    "./agents/loop/x",
    f"./agents/{PRIVATE}/x",
    f"./agents/reviewer/{PRIVATE}",
]
UNFIT = ["./agents/con", "./agents/a.", "./agents/.hidden/x", "./agents/r\u0435viewer", f"./agents/{'x' * 101}"]
"""One of each kind; `tests/rules/definitions/test_names.py` has all."""


def definition(name: str, identifier: str | None = None) -> Definition:
    """A definition with a name, and an id of its own."""
    identifier = identifier or str(uuid5(NAMESPACE_URL, name))
    return Definition.model_validate({"metadata": {"id": identifier, "name": name}})


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A state directory with links, inside and to the outside."""
    base = tmp_path / "project" / ".aiswarm"
    for path in (base / "agents", tmp_path / "outside" / "spy", base / "agents-evil"):
        path.mkdir(parents=True)
    (tmp_path / "outside" / "spy" / "agent.yaml").write_text("metadata: {id: spy, name: Spy}\n")
    (base / "agents" / "to-outside").symlink_to(tmp_path / "outside")
    (base / "agents" / "to-evil").symlink_to(base / "agents-evil")
    (base / "agents" / "loop").symlink_to(base / "agents" / "loop")
    return base


@pytest.fixture
def registry(base: Path) -> Registry:
    """The definitions of a project, with one of them."""
    made = open_registry(base)
    made.create(made.vacant("./agents/reviewer"), definition("Reviewer"))
    return made


def open_registry(base: Path, *more: Path) -> Registry:
    """Another registry of the same definitions, as another process has."""
    return Registry(base, [base / "agents", *more])


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(WorkbenchError) as caught:
        call()
    caught.value.message.encode()  # it can be sent
    return caught.value.code


def tree(path: Path) -> set[tuple[str, int]]:
    """Everything below a directory, with its time of change."""
    return {(str(one), one.lstat().st_mtime_ns) for one in path.rglob("*")}


# Paths


@pytest.mark.parametrize("path", HOSTILE)
def test_no_path_leads_outside(registry: Registry, base: Path, path: str) -> None:
    before = tree(base.parent.parent)
    assert code_of(lambda: registry.vacant(path)) == "INVALID_PATH"
    assert code_of(lambda: registry.find(path)) in ("INVALID_PATH", "AGENT_NOT_FOUND")
    if path not in ("./agents", ""):
        assert code_of(lambda: registry.listing(path)) == "INVALID_PATH"
    assert tree(base.parent.parent) == before


def test_a_new_definition_has_a_plain_path_that_is_free(registry: Registry, base: Path) -> None:
    before = tree(base)
    for path in UNFIT:
        assert code_of(lambda path=path: registry.vacant(path)) == "INVALID_PATH"
    assert tree(base) == before
    plain = ["./agents/a.b", "agents/A b_c-1", "./agents/team/x", "./agents//y/.", f"{base}/agents/z"]
    for number, path in enumerate(plain):
        directory = registry.vacant(path)
        registry.create(directory, definition(f"New{number}"))
        assert registry.get(f"New{number}").path == directory.path
        assert directory.path.is_relative_to(base / "agents")


def test_a_path_inside_or_equal_to_another_is_taken_in_any_case(registry: Registry, base: Path) -> None:
    (base / "agents" / "notes").mkdir()
    (base / "agents" / "notes" / "a.txt").write_text("mine")
    registry.create(registry.vacant("./agents/team/a"), definition("A"))
    for path in ("./agents/reviewer/inner", "./agents/REVIEWER", "./agents/Team/b", "./agents/team/A"):
        assert code_of(lambda path=path: registry.vacant(path)) == "AGENT_EXISTS"
    for path in ("./agents/reviewer", "./agents/notes", "./agents/team"):
        assert code_of(lambda path=path: registry.create(registry.vacant(path), definition("New"))) == "AGENT_EXISTS"
    assert registry.get("./agents/reviewer").definition == definition("Reviewer")


def test_links_to_definitions_are_followed_inside_and_not_listed(registry: Registry, base: Path) -> None:
    (base / "agents" / "alias").symlink_to("reviewer")
    assert registry.get("./agents/alias").path == base / "agents" / "reviewer"
    listing = registry.listing()
    assert ([path for path, _ in listing.found], listing.problems) == (["./agents/reviewer"], [])
    assert code_of(lambda: registry.find("spy")) == "AGENT_NOT_FOUND"


def test_a_directory_of_definitions_that_is_a_link_itself_is_not_used(tmp_path: Path, base: Path) -> None:
    shutil.rmtree(base / "agents")
    (base / "agents").symlink_to(tmp_path / "outside")
    registry = open_registry(base)
    assert registry.listing().found == []
    assert code_of(lambda: registry.find("./agents/spy")) == "INVALID_PATH"
    assert code_of(lambda: registry.vacant("./agents/new")) == "INVALID_PATH"


def test_a_directory_that_the_operator_chose_may_be_a_link(tmp_path: Path, base: Path) -> None:
    (tmp_path / "mine").symlink_to(tmp_path / "outside")
    registry = open_registry(base, tmp_path / "mine")
    spy = str(tmp_path / "outside" / "spy")
    assert [path for path, _ in registry.listing().found] == [spy]
    assert registry.get(str(tmp_path / "mine" / "spy")).path == registry.get("Spy").path == Path(spy)


def test_a_directory_that_is_replaced_by_a_link_is_not_used(registry: Registry, tmp_path: Path, base: Path) -> None:
    directory = registry.find("Reviewer")
    (base / "agents" / "reviewer").rename(tmp_path / "away")
    (base / "agents" / "reviewer").symlink_to(tmp_path / "outside" / "spy")
    before = tree(tmp_path / "outside")
    for call in (directory.read, directory.remove, lambda: directory.change(lambda old: old)):
        assert code_of(call) == "INVALID_PATH"
    assert tree(tmp_path / "outside") == before


# Copies and broken ones


def test_copies_with_the_same_name_or_id_are_ambiguous_and_are_named_by_path(registry: Registry, base: Path) -> None:
    shutil.copytree(base / "agents" / "reviewer", base / "agents" / "copy")
    for target in (definition("Reviewer").metadata.id, "Reviewer"):
        error = refused("AMBIGUOUS_TARGET", registry.find, target)
        assert error.details == {"candidates": ["./agents/copy", "./agents/reviewer"]}
    assert registry.find("./agents/copy").path == base / "agents" / "copy"


@pytest.mark.parametrize(
    "content",
    [b"", b"metadata: [", b"\xff\xfe", b"[" * 500_000, b"a: &a [x]\nb: [*a, *a]\n", b"x" * 50_000_000],
    ids=["empty", "invalid", "no text", "deep", "aliases", "50 MB"],
)
def test_an_unreadable_definition_is_named_and_hides_no_other(registry: Registry, base: Path, content: bytes) -> None:
    (base / "agents" / "broken").mkdir()
    (base / "agents" / "broken" / "agent.yaml").write_bytes(content)
    listing = registry.listing()
    assert [path for path, _ in listing.found] == ["./agents/reviewer"]
    assert [problem.partition(":")[0] for problem in listing.problems] == ["./agents/broken"]
    assert registry.get("Reviewer").definition == definition("Reviewer")
    assert code_of(lambda: registry.get("./agents/broken")) == "INVALID_CONFIGURATION"


@pytest.mark.parametrize("kind", ["fifo", "directory", "link", "dangling"])
def test_an_agent_file_that_is_no_file_is_not_read(registry: Registry, base: Path, tmp_path: Path, kind: str) -> None:
    place = base / "agents" / "odd"
    place.mkdir()
    path = place / "agent.yaml"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "outside" / "spy" / "agent.yaml" if kind == "link" else "nothing")
    assert [found for found, _ in registry.listing().found] == ["./agents/reviewer"]
    assert code_of(lambda: registry.get("./agents/odd")) == "INVALID_PATH"


# The cache


def test_two_registries_see_the_changes_of_each_other_at_once(registry: Registry, base: Path) -> None:
    other = open_registry(base)
    for number in range(30):
        one, two = (registry, other) if number % 2 else (other, registry)
        prompt = f"version {number}"
        one.change(one.find("Reviewer"), lambda old, prompt=prompt: old.model_copy(update={"prompt": prompt}))
        assert two.get("Reviewer").definition.prompt == prompt
        assert two.get("./agents/reviewer").hash == one.get("./agents/reviewer").hash


def test_an_edit_of_the_same_size_within_one_tick_of_the_clock_is_noticed(registry: Registry, base: Path) -> None:
    path = base / "agents" / "reviewer"
    for number in range(300):
        name = f"Reviewer {number:03}"
        with (path / "prompt.md").open("r+") as prompt, (path / "agent.yaml").open("r+") as agent:
            prompt.write(f"Version {number:03}.")
            agent.write(f"metadata: {{id: reviewer, name: {name}}}\n")
            agent.truncate()
        assert registry.get("./agents/reviewer").definition.prompt.startswith(f"Version {number:03}.")
        assert registry.listing().found[0][1].name == name
    for number in range(10):
        (path / "prompt.md").write_text(f"Version {number}.")
        os.utime(path / "prompt.md", (1_700_000_000, 1_700_000_000))
        assert registry.get("./agents/reviewer").definition.prompt == f"Version {number}."


@pytest.mark.long
def test_threads_share_a_registry_while_definitions_come_change_and_go(registry: Registry, base: Path) -> None:
    def work(number: int) -> int:
        name = f"worker-{number}"
        directory = registry.vacant(f"./agents/{name}")
        registry.create(directory, definition(name))
        for step in range(5):
            rule = PromptEntry(name=f"r{step}", text="x")
            add = lambda old, rule=rule: old.model_copy(update={"rules": [*old.rules, rule]})  # noqa: E731
            registry.change(registry.find(name), add)
            assert len(registry.get(name).definition.rules) == step + 1
            assert "./agents/reviewer" in {path for path, _ in registry.listing().found}
        registry.remove(registry.find(name))
        return code_of(lambda: registry.get(f"./agents/{name}")) == "AGENT_NOT_FOUND"

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))
    assert [path for path, _ in registry.listing().found] == ["./agents/reviewer"]
