"""Secrets are given in every way and used; only the files meant for secrets hold one in clear."""

from __future__ import annotations

import asyncio
import base64
import json
import stat
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.services.processes.running import spawn
from tests.services.tools.conftest import Shelf
from tests.services.tools.test_calls import MARKED
from tests.worker.working import ran
from workbench.app import Workbench
from workbench.rules.secrets.forms import MASK
from workbench.services.definitions import secrets
from workbench.trust.known_secrets import KEY_FILE

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]

WAYS = ("variable", "said", "provider", "reference", "argument", "address", "password")
SECRETS = {way: f"9q+{way}/Zr7=x4" for way in WAYS}
PRIVATE = {"variable": "environments", "said": "environments"}
"""Where variables stay, in files that only their owner reads."""
OF_THE_PERSON = {"provider": "agents", "argument": "mcp.json", "address": "mcp.json"}
"""Files that a person wrote secrets into, which are used as they are."""
LEAK = """env; for v in "$API_KEY" "$PLAIN"; do printf %s "$v" | base64; done
printf '{"result": {"said": ["%s", "%s"]}}' "$API_KEY" "$PLAIN" > "$WORKBENCH_RESULT"
echo "$API_KEY and $PLAIN" >&2; """


def found_in(state: Path) -> dict[str, set[str]]:
    """The entries of a state directory that hold a secret, by the way by which it came; also as others encode it."""
    found: dict[str, set[str]] = {}
    contents = {file: file.read_bytes() for file in state.rglob("*") if file.is_file()}
    for way, secret in SECRETS.items():
        forms = (secret.encode(), quote(secret, safe="").encode(), base64.b64encode(secret.encode()).rstrip(b"="))
        files = (file for file, content in contents.items() if any(form in content for form in forms))
        if names := {file.relative_to(state).parts[0] for file in files}:
            found[way] = names
    return found


async def test_only_files_that_are_to_hold_secrets_hold_some(
    served: Served, admit: Admit, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench, settings, call = served.workbench, served.workbench.settings, served.workbench.call
    variables = {"API_KEY": SECRETS["variable"], "PLAIN": SECRETS["said"]}
    agent = await spawn(served, name="walt", environment=variables, secret=["PLAIN"])
    failed = await ran(served, f"{LEAK} exit 3", max_retries=0)
    done = await ran(served, LEAK)
    assert (failed["status"], done["status"]) == ("failed", "completed")
    assert MASK in failed["error_message"]
    assert done["result_data"] == {"said": [MASK, MASK]}

    monkeypatch.setenv("THEIR_KEY", SECRETS["reference"])
    target = "./agents/reviewer"
    await call("agent_create", agentPath=target, name="reviewer")
    config = {"OPENAI_API_KEY": SECRETS["provider"], "OPENAI_BASE_URL": "http://127.0.0.1:9"}
    await call("agent_install_provider", agentTarget=target, providerType="openai", config=config)
    server = {"command": "server", "args": ["--token", "env://THEIR_KEY"]}
    await call("agent_add_mcp_server", agentTarget=target, serverName="theirs", config=server)
    snapshot = await asyncio.to_thread(workbench._ctx.definitions.get, target)
    await secrets.resolved(workbench._ctx, snapshot.definition)
    servers: dict[str, dict[str, Any]] = {
        "program": {"command": "nothing-of-this-name", "args": ["--token", SECRETS["argument"]]},
        "url": {"url": f"http://127.0.0.1:9/?key={quote(SECRETS['address'], safe='')}"},
    }
    for name, config in servers.items():
        await call("add_tool_server", name=name, config=config)
    await call("list_tool_servers")

    shelf.put("hub__post", parameters=MARKED)
    await call("call_tool", name="hub__post", arguments={"key": SECRETS["password"], "to": "me"})

    ada, task = await admit("ada"), await given.task(workbench)
    await given.done_by(workbench, ada, "claim_task", task)
    given_before = [SECRETS[way] for way in WAYS if way != "password"]
    await given.done_by(workbench, ada, "fail_task", task, error_message=f"{given_before}", retryable=False)

    kept_by_the_person = {way: {place} for way, place in {**PRIVATE, **OF_THE_PERSON}.items()}
    assert found_in(settings.home) == kept_by_the_person
    await call("terminate_agent", agent_id=agent["agent_id"])
    async with Workbench.open(settings) as another:
        assert json.dumps(given_before) not in json.dumps(await another.call("list_events", limit=1_000))
    assert found_in(settings.home) == kept_by_the_person
    private = [*(settings.home / "environments").iterdir(), settings.home / KEY_FILE]
    assert {stat.S_IMODE(file.stat().st_mode) for file in private} == {0o600}
