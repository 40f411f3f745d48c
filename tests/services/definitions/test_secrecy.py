"""A secret that is written out is in the definition's own file, and nowhere else, whatever is done with it."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Admit
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.ops import OPERATOR, Caller
from workbench.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long]
SECRET = "hunter2-of-the-person"
SERVERS = {
    "program": {"command": "no-such-program-anywhere", "env": {"API_TOKEN": SECRET, "DB": f"x://me:{SECRET}@y"}},
    "url": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": f"Bearer {SECRET}", "X-Api-Key": SECRET}},
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
    """What all operations answer, with the tracebacks of their errors."""
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
