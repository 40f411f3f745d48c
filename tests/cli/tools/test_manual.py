"""`docs/tools.md`: its examples run as printed, and the codes in it are those of the code."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from docs.generator import ROOT
from docs.generator.reference import error_codes
from tests.code_blocks import blocks_in, run_commands
from tests.conftest import Served
from tests.kernel.conftest import started

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

PAGE = ROOT / "docs" / "tools.md"
SERVER = """
from mcp.server import MCPServer

server = MCPServer("islands")


@server.tool()
def area(island: str) -> float:
    return 2.1


server.run("stdio")
"""


def test_the_codes_that_it_explains_exist() -> None:
    table = PAGE.read_text("utf-8").partition("| the error |")[2]
    listed = re.findall(r"`([A-Z_]{6,})`", table)
    assert len(listed) >= 10
    assert set(listed) - error_codes().keys() == set()


def test_the_notebook_cells_of_the_page_run_in_order(repository: Path, tmp_path: Path) -> None:
    with started(tmp_path, cwd=repository) as kernel:
        try:
            printed = [kernel.run(block.code) for block in blocks_in(PAGE, "python")]
        finally:
            kernel.run("%workbench stop")
    assert "mean" in printed[-1]
    assert "completed" in printed[-1]


@pytest.mark.anyio
async def test_the_commands_of_the_page_work(served: Served, repository: Path) -> None:
    (repository / "islands.py").write_text(SERVER)
    printed = await asyncio.to_thread(run_commands, blocks_in(PAGE, "console")[0].commands, repository)
    assert "ready" in printed[1]
    assert "2.1" in printed[2]
