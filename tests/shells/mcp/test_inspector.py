"""The tools as the inspector of the MCP project sees them, where it is installed.

npm ci --prefix tests/worker/programs
"""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Admit, Served

pytestmark = [pytest.mark.anyio, pytest.mark.node, pytest.mark.timeout(120)]

PROGRAMS = Path(__file__).parents[2] / "worker" / "programs" / "node_modules" / ".bin"
ERAS = ("legacy", "modern")


async def inspect(served: Served, token: str | None, era: str, *arguments: str) -> tuple[int, Any, str]:
    """Run the inspector: its exit status, what it printed, and its warnings."""
    process = await asyncio.create_subprocess_exec(
        *(PROGRAMS / "mcp-inspector", "--cli", served.info.mcp_url, "--transport", "http", "--protocol-era", era),
        *(("--header", f"Authorization: Bearer {token}") if token else ("--stored-auth-only",)),
        *arguments,
        env=os.environ | {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"},
        stdout=PIPE,
        stderr=PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, json.loads(out) if out else None, err.decode()


@pytest.mark.parametrize("era", ERAS)
async def test_the_inspector_finds_nothing_wrong_with_the_schemas_of_any_tool(served: Served, era: str) -> None:
    for token in (None, served.workbench.operator_token):
        status, listed, warnings = await inspect(served, token, era, "--method", "tools/list", "--strict")
        assert (status, warnings) == (0, "")
        assert all(tool["title"] and tool["outputSchema"]["type"] == "object" for tool in listed["tools"])


@pytest.mark.parametrize("era", ERAS)
async def test_the_inspector_takes_results_and_errors(served: Served, admit: Admit, era: str) -> None:
    token = (await admit("pam", role="planner")).token
    call = ("--method", "tools/call", "--tool-name")
    status, made, warnings = await inspect(
        *(served, token, era, *call, "create_task"),
        *("--tool-args-json", json.dumps({"title": "Count", "persona_id": "implementer"})),
    )
    assert (status, warnings) == (0, "")
    assert made["structuredContent"]["title"] == "Count"
    status, refused, _ = await inspect(served, token, era, *call, "get_task", "--tool-arg", "task_id=99")
    assert (status, refused["isError"]) == (5, True)
    assert json.loads(refused["content"][0]["text"])["error"]["code"] == "TASK_NOT_FOUND"
