"""Whatever an export writes comes back: `import` reads it, or names the command that does, and this command works."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import pytest

from tests.cli.conftest import Type, data
from tests.conftest import Ran
from workbench.analytics.exported import FORMATS, SAVED
from workbench.analytics.views import VIEWS
from workbench.cli.completion import offers
from workbench.cli.data import IMPORTABLE, OTHER_EXPORTS, VIEW_FORMATS
from workbench.cli.global_options import root
from workbench.ops import collect
from workbench.services import SERVICES
from workbench.services.sharing.export import Format, Resource
from workbench.services.sharing.import_file import Importable

COMMANDS = {
    "export": None,
    "export-plan": "plans",
    "define export": "definitions",
    "conversations export": "conversations",
}
"""Every command that exports, with what `import` calls its files, if it says who reads them by what they are called."""
OPERATIONS = {"export", "export_plan", "agent_export", "export_conversation"}


@pytest.fixture
def filled(run: Type) -> Type:
    """A project with a row of each resource."""
    for words in (
        *(["projects", "add", "Lab"], ["sessions", "add", "Lab", "Day 1"], ["teams", "add", "Red"]),
        ["contexts", "add", "Day 1", "Bills", "--content", "Longer in the north."],
        ["call", "create_task", "title=Count", "persona_id=tester"],
    ):
        assert run(*words).status == 0
    return run


def commands(group: click.Group, *names: str) -> Iterator[str]:
    """Every command, with those that it is below."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)
        yield " ".join([*names, name])


def named_command(refused: Ran) -> list[str]:
    """The command that the refusal of an import names."""
    assert (refused.status, refused.out, len(refused.err.splitlines())) == (1, "", 1)
    assert refused.err.startswith("NOT_IMPORTED: ")
    found = re.search(r"`workbench ([^`]*)`", refused.err)
    assert found is not None
    return shlex.split(found[1])


def test_nothing_is_exported_without_a_way_back() -> None:
    """What is new in an export is added to `import`, or has a refusal that names what reads it."""
    assert {name for name in commands(root) if "export" in name} == {*COMMANDS}
    assert {name for name in collect(SERVICES) if "export" in name} == OPERATIONS
    assert {kind for kind in COMMANDS.values() if kind} == {*OTHER_EXPORTS}
    assert {*IMPORTABLE} == {*get_args(Importable)}
    assert {*offers.RESOURCES} == {*get_args(Resource)} <= {*IMPORTABLE, *SAVED}
    assert {*VIEWS} <= {*SAVED}
    assert {*get_args(Format)} <= {*VIEW_FORMATS} == {*FORMATS}


@pytest.mark.long
@pytest.mark.parametrize("form", VIEW_FORMATS)
def test_what_export_wrote_is_imported_or_queried_by_the_command_that_the_refusal_names(
    filled: Type, tmp_path: Path, form: str
) -> None:
    (place := tmp_path / "my files").mkdir()
    is_of_rows = form in get_args(Format)
    written = [name for name in (*get_args(Resource), "attempts") if is_of_rows or name in SAVED]
    for name in written:
        file = str(place / f"{name}.{form}")
        assert filled("export", name, "-o", file).status == 0
        read = filled("import", name, file, "--yes")
        if name in IMPORTABLE and is_of_rows:
            assert read.out.startswith("Nothing to import. Already here: ")
            continue
        *words, query = named_command(read)
        assert words == ["sql", "--project", f"old={file}"]
        assert query == f"FROM old.{name}"
        count = data(filled("--json", *words, f"SELECT count(*) AS n {query}"))[0]["n"]
        assert (count > 0) == (name not in ("agents", "attempts"))  # of which there are none
        assert ("`workbench export" in read.err) == (name in IMPORTABLE)


@pytest.mark.long
def test_a_whole_project_a_plan_and_a_directory_of_views_name_what_reads_them(filled: Type, tmp_path: Path) -> None:
    views, archive, plan = (str(tmp_path / name) for name in ("all", "project.zip", "plan.md"))
    assert filled("export", "--jsonl", views).status == 0
    *words, query = named_command(filled("import", "tasks", views))
    assert [row["title"] for row in data(filled("--json", *words, query))] == ["Count"]
    assert filled("backup", archive).status == 0
    assert named_command(filled("import", "events", archive)) == ["restore", archive]
    text = "plan: penguins\ntasks:\n- {name: weigh, title: Weigh, persona: tester}\n"
    assert filled("call", "create_plan", f"text={text}").status == 0
    Path(plan).write_text(filled("export-plan", "penguins").out)
    assert filled(*named_command(filled("import", "plans", plan))).status == 0
    assert named_command(filled("import", "definition", plan)) == ["define", "import", plan]
    assert named_command(filled("import", "conversations", plan))[0] == "backup"
    (tmp_path / "notes.txt").write_text("")
    for resource in ("notes", "tasks"):
        assert filled("import", resource, str(tmp_path / "notes.txt")).status == 2
    cut = tmp_path / "attempts.parquet"
    cut.write_bytes(b"PAR1")
    assert filled("import", "attempts", str(cut)).err.startswith(f"EXPORT_DAMAGED: {cut} ")
