"""The manual cannot drift from the code."""

from __future__ import annotations

import ast
import re
from textwrap import dedent

import click
import pytest

from kernel_ext.commands import tree
from kernel_ext.magics import CELL_MAGICS
from tests.docs import REFERENCE, ROOT, SCHEMAS, emitted, error_codes, event_kinds, reference, schema_text
from workbench.analytics import views
from workbench.analytics.reports import names
from workbench.cli import cli
from workbench.ops import collect
from workbench.services import SERVICES
from workbench.settings import Settings

README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.timeout(180)
def test_the_reference_is_made_from_the_code_as_it_is() -> None:
    assert REFERENCE.read_text("utf-8") == reference(), "run `make docs`"


def test_the_reference_has_everything_that_can_be_called_typed_set_or_asked() -> None:
    """What the registries of the code have, compared with the first cells of each section."""
    text = REFERENCE.read_text("utf-8")
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    first = re.compile(r"^(?:\| |- |### )`([^`]+)`", re.MULTILINE)
    listed = {name: set(first.findall(section)) for name, section in sections.items()}
    assert listed["Operations"] == listed["Errors by operation"] == collect(SERVICES).keys()
    assert {name.split()[0] for name in listed["Settings"]} == Settings.model_fields.keys()
    assert listed["Reports"] == {*names()}
    assert {view.name for view in views.described()} <= listed["Views"]
    assert {f"workbench {name}" for name in cli.commands} == {
        " ".join(typed.split()[:2]) for typed in listed["Commands"]
    }
    assert {typed.split()[0] for typed in listed["Magics"]} == {"%workbench", *(f"%%{name}" for name in CELL_MAGICS)}
    assert listed["Events"] == {*event_kinds()}
    assert listed["Error codes"] == error_codes().keys()


def test_the_published_schemas_are_made_from_the_code_as_it_is() -> None:
    published = {file: path.read_text("utf-8") for file, path in SCHEMAS.items()}
    assert published == {file: schema_text(file) for file in SCHEMAS}, "run `make docs`"


def test_events_are_what_reaches_emit_and_no_names_of_files() -> None:
    module = """
        EVENTS: dict[str, str] = {"a": "task.from_table"}
        FILE = "task.json"

        def tell(tx, kind):
            tx.emit(kind, "task:1", at="task.subject")

        def work(tx, failed):
            open("persona.md")
            tell(tx, "task.passed")
            tell(tx, kind="task.named")
            last = "task.one" if failed else "task.other"
            tx.emit(last, FILE)
            for key, event in EVENTS.items():
                tx.emit(event, key)
            tx.emit("task.plain", "x")
    """
    kinds = {f"task.{past}" for past in ("from_table", "passed", "named", "one", "other", "plain")}
    assert emitted(ast.parse(dedent(module))) == kinds
    assert {"allowlist.txt", "persona.md", "task.json"} & {*event_kinds()} == set()


def test_every_command_is_in_the_readme() -> None:
    assert [name for name in cli.commands if not re.search(rf"`[^`]*\b{re.escape(name)}\b", README)] == []


def test_every_path_the_readme_names_exists() -> None:
    linked = re.findall(r"\]\(([^)#:]+)\)", README)
    assert [path for path in linked if not (ROOT / path).exists()] == []


def test_the_pictures_of_the_readme_are_those_that_a_browser_test_makes_and_small() -> None:
    test = (ROOT / "tests" / "browser" / "test_pictures.py").read_text("utf-8")
    made = {f"{name}.png" for name in re.findall(r'^    picture\(.*, "(\w+)", tmp_path\)$', test, re.MULTILINE)}
    assert set(re.findall(r"!\[[^]]+\]\(docs/pictures/([^)]+)\)", README)) == made
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs" / "pictures").iterdir()}
    assert sizes.keys() == made, "run `make pictures`"
    assert sum(sizes.values()) < 600_000


def test_the_structure_names_every_module_of_the_library() -> None:
    structure = README[README.index("## Structure") : README.index("## Working on")]
    tops = {path.name.removesuffix(".py") for path in (ROOT / "workbench").iterdir() if not path.name.startswith("_")}
    named = set(re.findall(r"[a-z_]+", structure))
    assert tops - named == set()


def test_every_command_explains_itself_and_its_options() -> None:
    silent = [name for name, command in tree().commands.items() if not command.help]
    for name, command in cli.commands.items():
        options = [option for option in command.params if isinstance(option, click.Option)]
        silent += [f"{name} {option.opts[0]}" for option in options if not option.help]
    assert silent == []
