"""The secrets of a definition are read for what is started with them, and are shown nowhere else."""

from __future__ import annotations

import asyncio
import logging
import traceback
from typing import Any

import pytest

from tests.conftest import Admit
from workbench.app import Workbench
from workbench.errors import Refused, Unavailable
from workbench.ops import OPERATOR
from workbench.rules.definitions.model import Definition
from workbench.services.definitions import secrets
from workbench.services.definitions.secrets import Resolved, resolved

pytestmark = pytest.mark.anyio
SECRET = "hunter2-of-the-person"
LITERAL = "hunter3-written-out"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_KEY", SECRET)


def definition(**sections: Any) -> Definition:
    """A definition with some sections."""
    return Definition.model_validate({"metadata": {"id": "one", "name": "One"}, **sections})


WHOLE = definition(
    providers={"openai": {"OPENAI_API_KEY": "env://THEIR_KEY", "OPENAI_BASE_URL": "http://127.0.0.1:9"}},
    mcpServers={
        "program": {"command": "server", "args": ["env://THEIR_KEY"], "env": {"KEY": "env://THEIR_KEY", "LEVEL": "1"}},
        "url": {"url": "http://127.0.0.1:9", "headers": {"Authorization": "Bearer env://THEIR_KEY", "X-Key": LITERAL}},
    },
)


async def test_references_are_replaced_where_secrets_are_used(workbench: Workbench) -> None:
    found = await resolved(workbench._ctx, WHOLE)
    assert found.providers == {"openai": {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": "http://127.0.0.1:9"}}
    program, url = found.mcp_servers["program"].model_dump(), found.mcp_servers["url"].model_dump()
    assert (program["env"], program["args"]) == ({"KEY": SECRET, "LEVEL": "1"}, ["env://THEIR_KEY"])
    assert url["headers"] == {"Authorization": f"Bearer {SECRET}", "X-Key": LITERAL}


async def test_only_what_is_used_is_read(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THEIR_KEY")
    found = await resolved(workbench._ctx, WHOLE, providers=(), servers=())
    assert (found.providers, found.mcp_servers) == ({}, {})


async def test_what_was_read_is_not_represented_and_is_masked_in_texts(workbench: Workbench) -> None:
    found = await resolved(workbench._ctx, WHOLE)
    assert SECRET not in repr(found)
    assert LITERAL not in str(found)
    assert found.redacted(f"{SECRET} and {LITERAL}, level 1") == "•••••• and ••••••, level 1"


async def test_the_longest_secret_is_masked_first() -> None:
    found = Resolved({}, {}, frozenset({"hunter", "hunter2", "x"}))
    assert found.redacted("hunter2 x hunter") == "•••••• x ••••••"


async def test_the_place_of_a_secret_that_cannot_be_read_is_named(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THEIR_KEY")
    with pytest.raises(Unavailable, match="SECRET_UNRESOLVED") as caught:
        await resolved(workbench._ctx, WHOLE, servers=("url",), providers=())
    place = "mcpServers.url.headers.Authorization"
    assert caught.value.details == {"reference": "env://THEIR_KEY", "place": place}
    assert caught.value.message.startswith(f"{place}: The secret env://THEIR_KEY cannot be read: ")


async def test_a_secret_that_no_header_can_have_is_not_quoted(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("THEIR_KEY", f"{SECRET}\nX-Other: 1")
    with pytest.raises(Unavailable, match="SECRET_UNRESOLVED") as caught:
        await resolved(workbench._ctx, WHOLE)
    told = "".join(traceback.format_exception(caught.value)) + str(caught.value.as_dict()) + caplog.text
    assert SECRET not in told


async def test_a_source_that_does_not_answer_is_not_waited_for(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "SECONDS", 0.05)
    may_go_on = asyncio.Event()
    loop = asyncio.get_running_loop()

    def waits(*_: object) -> str:
        asyncio.run_coroutine_threadsafe(may_go_on.wait(), loop).result()
        return SECRET

    monkeypatch.setattr(secrets, "resolve", waits)
    with pytest.raises(Unavailable, match="SECRET_UNRESOLVED"):
        await resolved(workbench._ctx, WHOLE)
    may_go_on.set()


async def test_only_the_operator_reads_a_configuration(workbench: Workbench, admit: Admit) -> None:
    config = {"OPENAI_API_KEY": "env://THEIR_KEY"}
    found = await secrets.configuration(workbench._ctx.of(OPERATOR), "openai", config)
    assert found == {"OPENAI_API_KEY": SECRET}
    ada = (await admit("ada", role="planner", definitions=True)).caller
    with pytest.raises(Refused, match="FORBIDDEN"):
        await secrets.configuration(workbench._ctx.of(ada), "openai", config)
