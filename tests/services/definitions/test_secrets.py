"""The secrets of a definition: read for its programs, shown to the operator only, written nowhere else."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit
from tests.definition_files.provider import Provider, running
from workbench.app import Workbench
from workbench.errors import Refused, Unavailable, WorkbenchError
from workbench.ops import OPERATOR, Caller
from workbench.rules.definitions.model import Definition
from workbench.services.definitions import secrets
from workbench.services.definitions.secrets import Resolved, resolved
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio
SECRET = "hunter2-of-the-person"
LITERAL = "hunter3-written-out"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_KEY", SECRET)


WHOLE = Definition.model_validate(
    {
        "metadata": {"id": "one", "name": "One"},
        "providers": {"openai": {"OPENAI_API_KEY": "env://THEIR_KEY", "OPENAI_BASE_URL": "http://127.0.0.1:9"}},
        "mcpServers": {
            "program": {
                "command": "server",
                "args": ["--key=env://THEIR_KEY"],
                "env": {"KEY": "env://THEIR_KEY", "L": "1"},
            },
            "url": {
                "url": "http://x/?key=env://THEIR_KEY&a=1",
                "headers": {"Authorization": "Bearer env://THEIR_KEY", "X-Key": LITERAL},
            },
        },
    }
)


async def unresolved(workbench: Workbench, **only: Any) -> WorkbenchError:
    """Why its secrets cannot be read."""
    error = await given.refusal(resolved(workbench._ctx, WHOLE, **only))
    assert error.code == "SECRET_UNRESOLVED"
    return error


async def test_references_are_replaced_where_secrets_are_used_and_nothing_shows_them(workbench: Workbench) -> None:
    found = await resolved(workbench._ctx, WHOLE)
    assert found.providers == {"openai": {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": "http://127.0.0.1:9"}}
    program, url = found.mcp_servers["program"].model_dump(), found.mcp_servers["url"].model_dump()
    assert (program["env"], program["args"]) == ({"KEY": SECRET, "L": "1"}, [f"--key={SECRET}"])
    assert url["url"] == f"http://x/?key={SECRET}&a=1"
    assert url["headers"] == {"Authorization": f"Bearer {SECRET}", "X-Key": LITERAL}
    assert SECRET not in repr(found)
    assert LITERAL not in str(found)
    assert found.redacted(f"{SECRET} and {LITERAL}, level 1") == "•••••• and ••••••, level 1"
    longest_first = Resolved({}, {}, frozenset({"hunter", "hunter2", "x"}))
    assert longest_first.redacted("hunter2 x hunter") == "•••••• x ••••••"


async def test_references_are_replaced_where_they_stand_in_arguments_and_addresses(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_KEY", "a/b c&d")
    words = ("env://THEIR_KEY", "--header", "Authorization: Bearer env://THEIR_KEY", "-e", "TOKEN=env://THEIR_KEY")
    more = ("db://me:env://THEIR_KEY@host/x", "https://x/?k=env://THEIR_KEY", "not env://THEIR_KEY here")
    servers = {
        "program": {"command": "server", "args": [*words, *more]},
        "url": {"url": "https://x/env://THEIR_KEY/mcp?a=env://THEIR_KEY&b=1"},
    }
    made = Definition.model_validate({"metadata": {"id": "one", "name": "One"}, "mcpServers": servers})
    found = (await resolved(workbench._ctx, made)).mcp_servers
    encoded = "a%2Fb%20c%26d"
    assert found["program"].model_dump()["args"] == [
        *("a/b c&d", "--header", "Authorization: Bearer a/b c&d", "-e", "TOKEN=a/b c&d"),
        *(f"db://me:{encoded}@host/x", f"https://x/?k={encoded}", "not env://THEIR_KEY here"),
    ]
    assert found["url"].model_dump()["url"] == f"https://x/{encoded}/mcp?a={encoded}&b=1"


async def test_only_used_secrets_are_read_and_an_unreadable_one_is_named_with_its_place(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THEIR_KEY")
    found = await resolved(workbench._ctx, WHOLE, providers=(), servers=())
    assert (found.providers, found.mcp_servers) == ({}, {})
    error, place = await unresolved(workbench, servers=("url",), providers=()), "mcpServers.url.url.key"
    assert error.details == {"reference": "env://THEIR_KEY", "place": place}
    assert error.message.startswith(f"{place}: The secret env://THEIR_KEY cannot be read: ")


async def test_a_secret_that_no_header_can_have_is_not_quoted(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("THEIR_KEY", f"{SECRET}\nX-Other: 1")
    error = await unresolved(workbench)
    assert SECRET not in "".join(traceback.format_exception(error)) + str(error.as_dict()) + caplog.text


async def test_a_silent_source_of_secrets_is_given_up(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "SECONDS", 0.05)
    may_go_on = asyncio.Event()
    loop = asyncio.get_running_loop()

    def waits(*_: object) -> str:
        asyncio.run_coroutine_threadsafe(may_go_on.wait(), loop).result()
        return SECRET

    monkeypatch.setattr(secrets, "resolve", waits)
    await unresolved(workbench)
    may_go_on.set()


async def test_only_the_operator_reads_a_configuration(workbench: Workbench, admit: Admit) -> None:
    config = {"OPENAI_API_KEY": "env://THEIR_KEY"}
    found = await secrets.configuration(workbench._ctx.of(OPERATOR), "openai", config)
    assert found == {"OPENAI_API_KEY": SECRET}
    ada = (await admit("ada", role="planner", definitions=True)).caller
    with pytest.raises(Refused, match="FORBIDDEN"):
        await secrets.configuration(workbench._ctx.of(ada), "openai", config)


# The configuration of a provider

KEY = {"OPENAI_API_KEY": "env://THEIR_KEY"}
OPENAI = {"agentTarget": "mine", "providerType": "openai"}


@pytest.fixture
async def provider(workbench: Workbench) -> AsyncIterator[Provider]:
    """A running provider, and a definition without one."""
    await workbench.call("agent_create", agentPath="./agents/mine", name="mine")
    async with running() as made:
        yield made


async def validity(workbench: Workbench, config: dict[str, str], **more: Any) -> dict[str, Any]:
    """The result of a live check of a configuration."""
    more = OPENAI | {"config": config, "live": True} | more
    return await workbench.call("agent_validate_provider_config", **more)


async def test_the_operator_sees_the_secrets_on_request(workbench: Workbench, provider: Provider) -> None:
    assert (await workbench.call("agent_get_provider_config", **OPENAI, reveal=True))["resolvedConfig"] is None
    await workbench.call("agent_install_provider", **OPENAI, config=KEY)
    plain = await workbench.call("agent_get_provider_config", **OPENAI)
    assert plain == {"installed": True, "config": KEY, "resolvedConfig": None}
    revealed = await workbench.call("agent_get_provider_config", **OPENAI, reveal=True)
    assert revealed == {"installed": True, "config": KEY, "resolvedConfig": {"OPENAI_API_KEY": SECRET}}
    await workbench.call("agent_update_provider", **OPENAI, config={"OPENAI_API_KEY": "env://NOT_SET_HERE"})
    with pytest.raises(Unavailable, match="SECRET_UNRESOLVED"):
        await workbench.call("agent_get_provider_config", **OPENAI, reveal=True)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("agent_get_provider_config", {"reveal": True}),
        ("agent_validate_provider_config", {"config": KEY, "live": True}),
    ],
)
async def test_a_planner_neither_sees_nor_sends_secrets(
    name: str, more: dict[str, Any], workbench: Workbench, provider: Provider, admit: Admit
) -> None:
    ada = (await admit("ada", role="planner", definitions=True)).caller
    await workbench.call("agent_install_provider", **OPENAI, config=KEY | {"OPENAI_BASE_URL": provider.address})
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada, name, OPENAI | more)
    assert provider.requests == []


async def test_a_provider_is_asked_whether_it_accepts_the_key(workbench: Workbench, provider: Provider) -> None:
    config = KEY | {"OPENAI_BASE_URL": provider.address}
    assert await validity(workbench, config) == {"isValid": True, "error": None, "live": True, "note": None}
    assert f"authorization: bearer {SECRET}" in provider.requests[0].lower()
    provider.reply, refused = (
        b"HTTP/1.1 401 x\r\nContent-Length: 0\r\n\r\n",
        "OpenAI refused the key or the request (401).",
    )
    assert await validity(workbench, config) == {"isValid": False, "error": refused, "live": True, "note": None}
    provider.reply, provider.is_silent = b"", True
    report = await validity(workbench, config, timeoutSeconds=0.2)
    assert report["error"] == "OpenAI did not answer within 0.2 s."


async def test_a_configuration_with_an_unreadable_secret_is_not_sent_to_the_provider(
    workbench: Workbench, provider: Provider
) -> None:
    config = {"OPENAI_BASE_URL": provider.address}
    report = await validity(workbench, config)
    assert (report["isValid"], report["live"]) == (False, False)
    report = await validity(workbench, config | {"OPENAI_API_KEY": "env://NOT_SET_HERE"})
    assert report["error"].startswith("providers.openai.OPENAI_API_KEY: The secret env://NOT_SET_HERE cannot be read")
    report = await validity(workbench, {}, providerType="test")  # it cannot be asked
    assert report == {"isValid": True, "error": None, "live": False, "note": None}
    assert provider.requests == []


# Everything that is done with a definition

SERVERS = {
    "program": {
        "command": "no-such-program-anywhere",
        "args": ["--token", SECRET],
        "env": {"API_TOKEN": SECRET, "DB": f"x://me:{SECRET}@y"},
    },
    "url": {
        "url": f"http://127.0.0.1:9/mcp?key={SECRET}",
        "headers": {"Authorization": f"Bearer {SECRET}", "X-Api-Key": SECRET},
    },
}
TARGET = {"agentTarget": "mine"}
PLACE = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": "http://127.0.0.1:9"}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("agent_create", {"agentPath": "./agents/mine", "name": "mine"}),
    *(("agent_add_mcp_server", TARGET | {"serverName": name, "config": server}) for name, server in SERVERS.items()),
    ("agent_install_provider", TARGET | {"providerType": "openai", "config": {"OPENAI_API_KEY": SECRET}}),
    ("agent_install_provider", TARGET | {"providerType": "openai", "config": {"OPENAI_API_KEY": SECRET}}),
    ("agent_install_provider", TARGET | {"providerType": "anthropic", "config": {"API_KEY": SECRET}}),
    ("agent_add_mcp_server", TARGET | {"serverName": "bad", "config": {"env": {"TOKEN": SECRET}}}),
    ("agent_add_mcp_server", TARGET | {"serverName": "bad", "config": {"url": f"http://ada:{SECRET}@127.0.0.1:9"}}),
    ("agent_validate_provider_config", TARGET | {"providerType": "openai", "config": {"OPENAI_KEY": SECRET}}),
    *(("agent_get_mcp_server", TARGET | {"serverName": name}) for name in SERVERS),
    *(("agent_probe_mcp_server", TARGET | {"serverName": name}) for name in SERVERS),
    ("agent_get_provider_config", TARGET | {"providerType": "openai"}),
    ("agent_validate_provider_config", TARGET | {"providerType": "openai", "config": PLACE, "live": True}),
    ("agent_list_mcp_servers", TARGET),
    ("agent_list_providers", TARGET),
    ("agent_get_info", TARGET),
    ("agent_list", {}),
    ("agent_validate", TARGET),
    ("agent_get_trust", TARGET),
    ("agent_request_trust", TARGET),
    ("agent_history", TARGET),
    ("agent_diff", TARGET),
    ("agent_export", TARGET),
    ("agent_clone", {"sourceAgent": "mine", "targetPath": "./agents/copy", "newName": "copy"}),
    ("agent_diff", TARGET | {"other": "./agents/copy"}),
    ("agent_delete", TARGET | {"confirm": True}),
    ("list_approvals", {"status": None}),
    ("list_events", {"limit": 1_000}),
]


async def answers(workbench: Workbench, caller: Caller) -> str:
    """The answers of all operations, with the tracebacks of their errors."""
    texts = []
    for name, arguments in CALLS:
        try:
            texts.append(json.dumps(await workbench.dispatch(caller, name, arguments)))
        except WorkbenchError as error:
            texts.append("".join(traceback.format_exception(error)) + json.dumps(error.as_dict()))
    return "\n".join(texts)


def files(home: Path) -> Iterator[str]:
    """The files of the project's state with the secret in them: of the store, of definitions, of logs."""
    for path in home.rglob("*"):
        if path.is_file() and SECRET.encode() in path.read_bytes():
            yield str(path.relative_to(home))


@pytest.mark.long
@pytest.mark.parametrize("role", ["operator", "planner"])
async def test_a_secret_stays_in_the_file_in_which_it_is(
    role: str, workbench: Workbench, settings: Settings, admit: Admit, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caller = OPERATOR if role == "operator" else (await admit("ada", role="planner", definitions=True)).caller
    told = await answers(workbench, caller)
    assert "mine was created" in told
    assert "mine was deleted" in told
    assert SECRET not in told
    assert SECRET not in caplog.text
    assert list(files(settings.home)) == ["agents/copy/agent.yaml"]


async def test_a_secret_encoded_in_an_address_is_known_in_clear(workbench: Workbench) -> None:
    servers = {"url": {"url": "https://x/?key=9q%2Bquite/Opaque%3D"}}
    made = Definition.model_validate({"metadata": {"id": "one", "name": "One"}, "mcpServers": servers})
    await resolved(workbench._ctx, made)
    assert workbench._ctx.secrets.masked("9q%2Bquite/Opaque%3D or 9q+quite/Opaque=") == "•••••• or ••••••"
