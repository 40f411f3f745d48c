"""The person's key of a provider answers for an agent, and is nowhere in its box."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import given
from tests.conftest import Served
from tests.services.processes.running import process, serving, spawn
from tests.shells.models.upstream import says, upstream
from workbench.definition_files import model_keys
from workbench.rules.models.upstream import PROVIDERS
from workbench.services.processes import profiles
from workbench.state.settings import Settings
from workbench.trust.withheld import trust, withheld

pytestmark = pytest.mark.anyio

KEY = "sk-ant-the-persons-own-key-0123456789"
LOOK = """
import base64, json, os, pathlib, urllib.request
seen = [json.dumps(dict(os.environ)).encode()]
places = [os.environ["HOME"], os.environ.get("TMPDIR", ""), "."]
for place in filter(None, places):
    seen += [path.read_bytes() for path in pathlib.Path(place).rglob("*") if path.is_file()]
for of_process in pathlib.Path("/proc").glob("[0-9]*"):
    for name in ("environ", "cmdline"):
        try:
            seen.append((of_process / name).read_bytes())
        except OSError:
            pass
base, token = os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_API_KEY"]
request = urllib.request.Request(base + "/v1/messages", b'{"model": "m"}', {"x-api-key": token})
request.add_header("content-type", "application/json")
answer = json.load(urllib.request.urlopen(request))
found = {"key": any(base64.b64decode(os.environ["KEY_IN_BASE64"]) in one for one in seen), "files": len(seen)}
variables = sorted(name for name in os.environ if "ANTHROPIC" in name or "CLAUDE" in name)
print(token)
result = found | {"answer": answer, "base": base, "token": token[:4], "variables": variables}
pathlib.Path(os.environ["WORKBENCH_RESULT"]).write_text(json.dumps({"result": result}))
"""


@pytest.fixture(autouse=True)
def _own_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORKBENCH_CONFIG", str(tmp_path / "config"))


def profile(settings: Settings, **more: Any) -> None:
    """A trusted profile of the project whose program looks for the key wherever it can, and asks a model."""
    fields = {"summary": "Looks.", "command": ["{python}", "-c", LOOK], "passes": ["ANTHROPIC_API_KEY"]}
    (settings.home / "profiles").mkdir(parents=True, exist_ok=True)
    (settings.home / "profiles" / "looks.yaml").write_text(yaml.safe_dump(fields | more), "utf-8")
    trust(settings.project, withheld(settings.project))


async def done(served: Served, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A spawned agent that does a task, and its task."""
    import base64

    environment = {"KEY_IN_BASE64": base64.b64encode(KEY.encode()).decode(), **more.pop("environment", {})}
    agent = await spawn(served, profile="looks", environment=environment, **more)
    task_id = await given.task(served.workbench)
    return agent, await given.reached(served.workbench, task_id, "completed", "failed")


@pytest.mark.long
async def test_an_agent_asks_a_model_with_a_key_that_is_nowhere_in_its_box(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile(settings)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "oauth-of-the-person")
    async with upstream(says({"said": "yes"})) as model:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        async with serving(settings) as served:
            agent, task = await done(served)
            result = task["result_data"]
            log = Path((await process(served, agent["agent_id"]))["log"]).read_text("utf-8")
            await served.workbench.end_workers()
        assert {(asked.path, asked.headers["x-api-key"]) for asked in model.asked} == {
            ("/v1/models", KEY),
            ("/v1/messages", KEY),
        }
    assert (result["key"], result["answer"]) == (False, {"said": "yes"})
    assert result["files"] > 3
    assert (result["base"], result["token"]) == (f"{served.info.url}/models/anthropic", "wbm_")
    assert result["variables"] == ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]
    assert agent["models"] == ["Anthropic answers, with the server's variable ANTHROPIC_API_KEY."]
    assert "wbm_" not in log
    stored = [path for path in settings.home.rglob("*") if path.is_file()]
    assert [path for path in stored if KEY.encode() in path.read_bytes()] == []


@pytest.mark.long
async def test_the_key_that_is_nearest_to_the_agent_answers_and_a_planner_cannot_lead_the_persons_elsewhere(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    profile(settings)
    (tmp_path / "key").write_text(KEY)
    async with upstream(says({})) as model, upstream(says({})) as own:
        model_keys.keep_reference(PROVIDERS["anthropic"], f"file://{tmp_path}/key", model.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-server-1111111111")
        async with serving(settings) as served:
            await done(served)
            here = {"ANTHROPIC_API_KEY": "sk-ant-of-the-agent-22222222222", "ANTHROPIC_BASE_URL": own.url}
            await served.workbench.end_workers()
            await done(served, environment=here)
            await served.workbench.end_workers()
    assert {asked.headers["x-api-key"] for asked in model.asked} == {KEY}
    assert {asked.headers["x-api-key"] for asked in own.asked} == {"sk-ant-of-the-agent-22222222222"}


async def test_what_is_wrong_with_a_key_is_told_when_an_agent_is_spawned(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile(settings)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    async with upstream(says({}, "401 Unauthorized")) as model:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        async with serving(settings) as served:
            first = await spawn(served, profile="looks")
            second = await spawn(served, profile="looks")
            await served.workbench.end_workers()
    assert len(model.asked) == 1
    assert first["models"] == second["models"]
    assert first["models"] == [
        f"Anthropic at {model.url[7:]} refuses the key: status 401. Its key is that of the server's variable "
        "ANTHROPIC_API_KEY. `workbench keys add anthropic` keeps another."
    ]


@pytest.mark.long
async def test_without_the_gateway_an_agent_gets_the_key_as_its_profile_says(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile(
        settings, command=["{python}", "-c", "import os; print(len(os.environ['ANTHROPIC_API_KEY']))"], answer="output"
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    async with serving(settings.model_copy(update={"model_gateway": False})) as served:
        agent, task = await done(served)
        await served.workbench.end_workers()
    assert (agent["models"], task["result_data"]) == ([], {"answer": str(len(KEY))})


async def test_a_kept_key_is_what_a_profile_needs(settings: Settings, tmp_path: Path) -> None:
    profile(settings, needs=["$ANTHROPIC_API_KEY"])
    looks = await asyncio.to_thread(profiles.load, settings, "looks")
    assert profiles.missing(looks) == ["$ANTHROPIC_API_KEY"]
    model_keys.keep(PROVIDERS["anthropic"], KEY)
    assert profiles.missing(looks) == []
    assert KEY not in model_keys.path().read_text()
    model_keys.forget(PROVIDERS["anthropic"])
    assert profiles.missing(looks) == ["$ANTHROPIC_API_KEY"]
    kept = [path for path in model_keys.path().parent.rglob("*") if path.is_file()]
    assert [path for path in kept if KEY in path.read_text()] == []


async def test_a_typed_key_is_removed_once_another_one_is_used() -> None:
    model_keys.keep(PROVIDERS["anthropic"], KEY)
    model_keys.keep_reference(PROVIDERS["anthropic"], "env://ANOTHER")
    kept = [path for path in model_keys.path().parent.rglob("*") if path.is_file()]
    assert not [path for path in kept if KEY in path.read_text("utf-8", "replace")]


async def test_the_providers_are_listed_with_what_came_of_their_keys(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-3333333333333333")
    async with upstream(says({"data": []})) as model, upstream(says({}, "401 Unauthorized")) as other:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{other.url}/v1")
        async with serving(settings) as served:
            listed = await served.workbench.call("list_model_keys")
            checked = await served.workbench.call("check_model_keys")
    assert [key["state"] for key in listed["keys"]] == ["untried", "untried", "none"]
    assert [key["state"] for key in checked["keys"]] == ["accepted", "refused", "none"]
    assert [asked.path for asked in (*model.asked, *other.asked)] == ["/v1/models", "/v1/models"]
    assert KEY not in json.dumps([listed, checked])
