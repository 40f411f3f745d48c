"""The manual cannot drift from the code."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from textwrap import dedent

import click
import pytest

from docs.generator import ROOT, architecture, declared_commands
from docs.generator.op_codes import EVERYWHERE
from docs.generator.pages import PAGES, REFERENCE, documented_codes
from docs.generator.reference import emitted, error_codes, event_kinds
from kernel_ext.commands import tree
from kernel_ext.magics import CELL_MAGICS
from tests.notebooks.stored import NOTEBOOKS
from workbench.analytics import views
from workbench.analytics.reports import names
from workbench.cli import cli
from workbench.ops import collect
from workbench.present import declared
from workbench.services import SERVICES
from workbench.state.settings import Settings

DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
CODE = re.compile(r"`([^`\n]+)`")
OF_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
LONGEST = {"README.md": 150, "CHANGELOG.md": 120}
"""Lines of the documents that everybody reads."""


@pytest.mark.long
@pytest.mark.timeout(180)
def test_the_reference_is_made_from_the_code_as_it_is() -> None:
    assert REFERENCE.read_text("utf-8") == PAGES[REFERENCE](), "run `make docs`"
    assert entries()["Events"] == {*event_kinds()}
    assert entries()["Error codes"] == error_codes().keys()


@pytest.mark.parametrize("path", [path for path in PAGES if path != REFERENCE], ids=lambda path: path.name)
def test_a_generated_page_is_made_from_the_code_as_it_is(path: Path) -> None:
    assert path.read_text("utf-8") == PAGES[path](), "run `make docs`"


@cache
def entries() -> dict[str, set[str]]:
    """The first cells of each section of the reference."""
    text = REFERENCE.read_text("utf-8")
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    first = re.compile(r"^(?:\| |- |### )`([^`]+)`", re.MULTILINE)
    return {name: set(first.findall(section)) for name, section in sections.items()}


def test_the_reference_has_everything_that_can_be_called_typed_set_or_asked() -> None:
    listed = entries()
    assert listed["Operations"] == listed["Errors by operation"] == collect(SERVICES).keys()
    assert {name.split()[0] for name in listed["Settings"]} == Settings.model_fields.keys()
    assert listed["Reports"] == {*names()}
    assert {view.name for view in views.described()} <= listed["Views"]
    assert {f"workbench {name}" for name in cli.commands} == {
        " ".join(typed.split()[:2]) for typed in listed["Commands"]
    }
    assert {typed.split()[0] for typed in listed["Magics"]} == {"%workbench", *(f"%%{name}" for name in CELL_MAGICS)}
    assert listed["Error codes"] > EVERYWHERE.union(*documented_codes().values())


def test_a_list_is_refreshed_by_events_that_exist() -> None:
    nouns = {noun for operation in collect(SERVICES).values() for noun in operation.refreshed_by}
    assert nouns - {kind.partition(".")[0] for kind in entries()["Events"]} == {"clock"}


def test_the_declared_commands_are_those_of_the_operations_as_they_are() -> None:
    assert declared.FILE.read_text("utf-8") == declared_commands.data(), "run `make docs`"


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
    assert {"allowlist.txt", "persona.md", "task.json"} & entries()["Events"] == set()


def test_the_documents_that_everybody_reads_are_short() -> None:
    lengths = {name: len((ROOT / name).read_text("utf-8").splitlines()) for name in LONGEST}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST[name]} == {}


def headings(text: str) -> set[str]:
    """The anchors of the headings of a page."""
    matches = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in matches}


def written(document: Path) -> str:
    """The text of a document ; of a notebook, that of its Markdown cells."""
    text = document.read_text("utf-8")
    if document.suffix == ".md":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


@pytest.mark.parametrize("document", [*DOCUMENTS, *NOTEBOOKS], ids=lambda path: path.name)
def test_every_link_of_a_document_leads_to_a_file_and_a_heading(document: Path) -> None:
    broken = []
    for link in LINK.findall(OF_CODE.sub("", written(document))):
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        if "://" not in link and not (
            target.exists() and (not anchor or anchor in headings(target.read_text("utf-8")))
        ):
            broken.append(link)
    assert broken == []


def test_every_document_is_in_the_table_of_the_readme() -> None:
    named = re.findall(r"\]\(docs/(\w+\.md)\)", (ROOT / "README.md").read_text("utf-8").partition("## Documents")[2])
    assert set(named) == {path.name for path in DOCUMENTS if path.parent.name == "docs"}


def test_every_picture_of_the_documents_is_small_and_made_by_a_browser_test() -> None:
    test = (ROOT / "tests" / "browser" / "test_pictures.py").read_text("utf-8")
    made = {f"{name}.png" for name in re.findall(r'^    picture\(.*, "(\w+)", tmp_path\)$', test, re.MULTILINE)}
    texts = [document.read_text("utf-8") for document in DOCUMENTS]
    assert {name for text in texts for name in re.findall(r"!\[[^]]+\]\([^)]*pictures/([^)]+)\)", text)} == made
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs" / "pictures").iterdir()}
    assert sizes.keys() == made, "run `make pictures`"
    assert sum(sizes.values()) < 600_000


def test_every_path_that_the_architecture_names_exists() -> None:
    named = [
        name for name in CODE.findall(ARCHITECTURE) if re.fullmatch(r"(workbench|kernel_ext|data|tests)/[\w./]*", name)
    ]
    assert len(named) > 100
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_architecture_names_every_package_and_each_says_what_it_is() -> None:
    listed = dict(
        re.findall(r"^\| \[`(\S+/)`\]\S+ \| (.*) \|$", ARCHITECTURE.partition("## Packages")[2], re.MULTILINE)
    )
    places = {module.parent.relative_to(ROOT) for top in architecture.TOPS for module in (ROOT / top).rglob("*.py")}
    assert listed.keys() == {f"{place.as_posix()}/" for place in places}
    assert [place for place, about in listed.items() if len(about) < 20] == []


def test_the_files_in_which_the_architecture_answers_a_question_have_what_it_says() -> None:
    rows = re.findall(
        r"^\| (.+) \| (.+) \| (.+) \|$", ARCHITECTURE.partition("## Where")[2].partition("## ")[0], re.MULTILINE
    )
    answers = {asked: (CODE.findall(files), CODE.findall(words)) for asked, files, words in rows[1:]}
    assert len(answers) == 26
    for asked, (files, words) in answers.items():
        texts = [(ROOT / file).read_text("utf-8") for file in files if "/" in file and "=" not in file]
        assert [word for word in words if not any(word in text for text in texts)] == [], asked


def test_every_command_explains_itself_and_its_options() -> None:
    silent = [name for name, command in tree().commands.items() if not command.help]
    for name, command in cli.commands.items():
        options = [option for option in command.params if isinstance(option, click.Option)]
        silent += [f"{name} {option.opts[0]}" for option in options if not option.help]
    assert silent == []
