"""`workbench answer` and `workbench approve --for --with`, as a person types them, with a server whose call waits."""

from __future__ import annotations

import asyncio
import shutil
import sys
from typing import Any

import pytest

from tests import given
from tests.cli.conftest import data
from tests.conftest import Admit, Command, Served
from tests.upstream.servers import SERVER
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(120)]


async def waiting(served: Served, kind: str) -> int:
    """The id of the approval of a kind that waits."""

    async def look() -> list[dict[str, Any]]:
        return list((await served.workbench.call("list_approvals", kind=kind))["approvals"])

    return int((await given.until(look))[0]["id"])


async def test_a_person_answers_a_question_and_allows_such_calls(
    served: Served, settings: Settings, command: Command, admit: Admit
) -> None:
    call, path = served.workbench.call, shutil.copy(SERVER, settings.project / "server.py")
    await call("add_tool_server", name="small", config={"command": sys.executable, "args": [str(path)]})
    paint = {"name": "small__paint", "arguments": {"what": "it"}}
    for words, told in (
        (["colour=red"], "red"),
        (["--decline"], "no colour for it"),
        (["--cancel"], "no colour for it"),
    ):
        painting = asyncio.create_task(call("call_tool", **paint))
        number = await waiting(served, "question")
        shown = (await command("approvals")).out
        assert "the MCP server small asks for small__paint: Which colour for it?; fields: colour" in " ".join(
            shown.split()
        )
        assert (await command("answer", str(number), "color=red")).err.startswith(
            "INVALID_ARGUMENTS: color is no field."
        )
        assert "missing: colour" in (await command("answer", str(number))).err
        assert (await command("approve", "--all")).out == "Nothing needs your approval.\n"
        answered = await command("answer", "small__paint", *words)
        assert (answered.status, answered.out.partition(" ")[0]) == (0, "small")
        assert (await painting)["result"] == {"result": told}
    ada = await admit("ada", tools=["small"])
    adding = asyncio.create_task(
        served.workbench.dispatch(ada.caller, "call_tool", {"name": "small__add", "arguments": {"a": 1, "b": 2}})
    )
    number = await waiting(served, "tool_call")
    assert (await command("approve", str(number), "--for", "task")).err.startswith(
        "INVALID_ARGUMENTS: The call belongs"
    )
    assert (await command("approve", str(number), "--with", "a")).status == 2
    approved = await command("approve", str(number), "--with", "a=1", "--with", "b=*")
    assert "small__add is allowed with such arguments from now on" in " ".join(approved.out.split())
    assert (await adding)["result"] == {"result": 3}
    [permission] = data(await command("--json", "tools", "allow"))
    assert permission["arguments"] == {"a": "1", "b": "*"}
    assert 'only with {"a": "1", "b": "*"}' in " ".join((await command("tools", "allow")).out.split())
