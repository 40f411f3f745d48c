"""The example of `docs/mcp.md`, run as it is printed."""

from __future__ import annotations

import ast
import asyncio
import re
from typing import Any

import pytest

from docs.generator import ROOT
from tests.conftest import Admit, Served
from tests.shells.mcp.test_resources import PLAN
from workbench.shells.mcp.addresses import LISTS, SINGLE
from workbench.shells.mcp.prompts import OFFERS

pytestmark = pytest.mark.anyio

PAGE = (ROOT / "docs" / "mcp.md").read_text("utf-8")


async def test_the_example_follows_a_plan_to_its_end(
    served: Served, admit: Admit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await served.workbench.call("create_plan", text=PLAN)
    ada = await admit("ada")
    monkeypatch.setenv("WORKBENCH_TOKEN", ada.token)
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    program = example.replace("http://127.0.0.1:8765/mcp", served.info.mcp_url)
    code = compile(program, "docs/mcp.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    running = asyncio.create_task(eval(code, {}))
    printed = ""
    while "- [ ] Count them" not in printed:
        await asyncio.sleep(0)
        printed += capsys.readouterr().out
    for task_id in (1, 2):
        await served.workbench.dispatch(ada.caller, "claim_task", {"task_id": task_id})
        await served.workbench.dispatch(ada.caller, "complete_task", {"task_id": task_id})
    await running
    assert "- [x] Report" in capsys.readouterr().out


def test_the_page_names_every_resource_and_every_prompt() -> None:
    names: list[Any] = [*(kind.address for kind in (*LISTS, *SINGLE)), *(offer.name for offer in OFFERS)]
    assert [name for name in names if f"`{name}`" not in PAGE] == []
    operations = {kind.operation for kind in (*LISTS, *SINGLE)}
    assert [name for name in operations if f"`{name}`" not in PAGE] == []
