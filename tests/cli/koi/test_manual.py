"""`docs/personalities.md`: its examples run as printed."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from docs.generator import ROOT
from tests.cli.koi.test_two_nodes import field, until
from tests.code_blocks import blocks_in, run_commands
from tests.conftest import Served
from tests.kernel.conftest import started
from workbench.app import Workbench
from workbench.rules.personalities.role_config import load

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

PAGE = ROOT / "docs" / "personalities.md"
__all__ = ["field"]


def console(word: str) -> list[str]:
    """The commands of the block that has a word."""
    return next(block.commands for block in blocks_in(PAGE, "console") if word in block.code)


def test_the_configuration_on_the_page_is_valid() -> None:
    [config] = [block.code for block in blocks_in(PAGE, "json")]
    agent = load(json.dumps(json.loads(config)), {}).agent
    assert agent is not None
    assert agent.name == "helpful-agent"


def test_the_notebook_cells_of_the_page_run_in_order(repository: Path, tmp_path: Path) -> None:
    with started(tmp_path, cwd=repository) as kernel:
        try:
            kernel.run("%load_ext workbench\n%workbench start --port 0\n%workbench koi join --name lab")
            printed = [kernel.run(block.code) for block in blocks_in(PAGE, "python")]
            [query] = [block.code for block in blocks_in(PAGE, "sql")]
            kernel.run('while not wb.call("list_tools", kind="trait", search="ada__mean")["tools"]: pass')
            joined = kernel.run("wb.tools['ada__mean'](values=[1, 2, 6])\n" + f"print(wb.sql({query!r}).tool_name[0])")
        finally:
            kernel.run("%workbench stop")
    assert "ada" in printed[0]
    assert "ada__mean" in joined


@pytest.mark.anyio
async def test_the_commands_of_the_page_work(served: Served, field: Workbench, repository: Path) -> None:
    async def run(commands: list[str]) -> list[str]:
        return await asyncio.to_thread(run_commands, commands, repository)

    await run(console("koi join --name lab"))
    contact = (await served.workbench.call("get_network"))["base_url"]
    await field.call("join_network", name="station", first_contact=contact)
    await until(served.workbench, "peer.met")
    shown = await run(console("personalities publish"))
    assert "ada" in shown[2]
    decided = await run([command.replace("lab", "station") for command in console("koi allow")])
    assert re.match(r"station·[0-9a-f]{6} is blocked", decided[-1])
    [left] = await run([command for command in console("koi leave") if "leave" in command])
    assert "takes no part" in left
