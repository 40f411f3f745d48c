"""`docs/chat.md`: its examples run as printed, and it names every operation."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from docs.generator import ROOT
from tests.code_blocks import blocks_in, run_commands
from tests.conftest import Served
from tests.kernel.conftest import started
from workbench.ops import collect
from workbench.providers.scripted import Script
from workbench.rules.yaml_text import load
from workbench.services import conversations as service

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]

PAGE = ROOT / "docs" / "chat.md"


def test_the_page_names_every_operation() -> None:
    text = PAGE.read_text("utf-8")
    assert [op for op in collect([service]) if f"`{op}`" not in text] == []


def test_the_script_on_the_page_is_valid() -> None:
    [block] = blocks_in(PAGE, "yaml")
    assert len(Script.validate_python(load(block.code)["script"])) == 2


def test_the_notebook_cells_of_the_page_run_in_order(repository: Path, tmp_path: Path) -> None:
    with started(tmp_path, cwd=repository) as kernel:
        try:
            printed = [kernel.run(block.code) for block in blocks_in(PAGE, "python")]
        finally:
            kernel.run("%workbench stop")
    assert printed[1] == "You said: What is a lease?"
    assert printed[2].startswith("You said: What is a lease?You said: And an attempt? 2\n# Leases")


@pytest.mark.anyio
async def test_the_commands_of_the_page_work(served: Served, repository: Path) -> None:
    printed = await asyncio.to_thread(run_commands, blocks_in(PAGE, "console")[0].commands, repository)
    assert printed[1] == "You said: What is a lease?\n"
    assert '"content": "You said: What is an attempt?"' in printed[2]
    assert "What is an attempt?" in printed[3]
