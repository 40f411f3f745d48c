"""`docs/definitions.md`: its examples run as printed, and its tables are complete."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.generator import ROOT
from docs.generator.reference import FAMILIES, error_codes
from tests.code_blocks import blocks_in, run_commands
from tests.kernel.conftest import started
from workbench.app import Workbench
from workbench.ops import collect
from workbench.rules.definitions import layout
from workbench.rules.definitions.completeness import findings
from workbench.services import definitions as service
from workbench.state.settings import Settings

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]

PATH = ROOT / "docs" / "definitions.md"
PAGE = PATH.read_text("utf-8")
PLACES = ("workbench/definition_files", "workbench/rules/definitions", "workbench/services/definitions")
GENERAL = {"PROJECT_UNWRITABLE", "FORBIDDEN", "BAD_REFERENCE", "KEY_NOT_FOUND", "KEYS_UNREADABLE"}
"""Codes that are about more than definitions, or about keys of model providers."""
WORD = re.compile(r"`(\w+)`")
OPERATIONS = [op.name for op in collect([service]).values()]


def example(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def raised() -> Iterator[str]:
    """The codes of the errors that the code about definitions raises itself."""
    for path in (path for place in PLACES for path in sorted((ROOT / place).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in FAMILIES and node.args:
                code = node.args[0]
                if isinstance(code, ast.Constant):
                    yield str(code.value)


def test_the_page_has_the_verb_of_every_operation() -> None:
    section = PAGE.partition("## Operations")[2].partition("\n## ")[0]
    rows = [map(WORD.findall, cells) for cells in re.findall(r"^\| (`.+`) \| (`.+`) \|$", section, re.MULTILINE)]
    verbs = {part.removesuffix("s"): words for parts, words in rows for part in parts}
    whole = {f"agent_{verb}" for verb in verbs.pop("definition")}
    parts = {verb if "_" in verb else f"agent_{verb}_{part}" for part, words in verbs.items() for verb in words}
    own = {name.removeprefix("agent_") for name in parts if name.endswith(("_rule", "_reference"))}
    assert len(OPERATIONS) >= 37
    assert {name.removesuffix("s") for name in OPERATIONS} == {name.removesuffix("s") for name in whole} | parts | own


def test_the_table_of_errors_has_every_code_about_definitions_and_no_other() -> None:
    table = PAGE.partition("## Errors")[2]
    listed = {code for row in table.splitlines() if row.startswith("| `") for code in re.findall(r"`([A-Z_]+)`", row)}
    about = {*raised()} | {code for code in error_codes() if code.startswith("DEFINITION_")}
    assert about - GENERAL - listed == set()
    assert listed - error_codes().keys() == set()


def test_the_files_on_the_page_are_a_definition() -> None:
    rule = example("markdown")
    parsed = layout.parse({"agent.yaml": example("yaml"), "prompt.md": "You review.", "rules/cite.md": rule})
    assert (parsed.metadata.name, parsed.settings.temperature, parsed.rules[0].priority_level) == ("reviewer", 0.2, 10)
    assert list(findings(parsed)) == []


@pytest.mark.sqlite("its shell does not know where a database is")
@pytest.mark.anyio
async def test_the_commands_of_the_page_work(workbench: Workbench, settings: Settings) -> None:
    await asyncio.to_thread(run_commands, blocks_in(PATH, "console")[0].commands, settings.project)
    system_prompt = await workbench.call("agent_get_system_prompt", agentTarget="reviewer", composed=True)
    assert "Read the code around each change" in system_prompt["prompt"]
    assert "Name the file and the line" in system_prompt["prompt"]


def test_the_notebook_cell_of_the_page_runs(repository: Path, tmp_path: Path) -> None:
    with started(tmp_path, cwd=repository) as kernel:
        kernel.run("%workbench start --port 0")
        printed = kernel.run(example("python"))
        kernel.run("%workbench stop")
    assert "You find what is wrong with a plan." in printed
    assert "Name the task that you criticise." in printed
