"""A secret given to one process of a project is recorded by no other, even after the first has ended."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests import given
from tests.conftest import Clock, admitted
from workbench.app import Workbench
from workbench.rules.definitions.model import Definition
from workbench.rules.profile import Profile
from workbench.rules.secrets.forms import MASK
from workbench.services.access import secret_marks
from workbench.services.definitions import models, secrets
from workbench.services.processes import profiles
from workbench.services.processes.processes import ResourceLimits
from workbench.services.spawning.request import SpawnRequest, learn_secrets
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

VALUE = "blue+horse/7=co"
Give = Callable[[Workbench, pytest.MonkeyPatch], Awaitable[object]]


def request(profile: str = "script", *secret: str) -> SpawnRequest:
    return SpawnRequest(profile, None, None, ResourceLimits(), False, True, secret=secret)


async def _variable(workbench: Workbench, patch: pytest.MonkeyPatch) -> None:
    await learn_secrets(workbench._ctx, request(), {"API_KEY": VALUE})


async def _said_to_be_secret(workbench: Workbench, patch: pytest.MonkeyPatch) -> None:
    await learn_secrets(workbench._ctx, request("script", "PLAIN"), {"PLAIN": VALUE})


async def _passed(workbench: Workbench, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("THEIR_TOKEN", VALUE)
    await _with_profile(workbench, patch, passes=("THEIR_TOKEN",))
    patch.delenv("THEIR_TOKEN")


async def _copied(workbench: Workbench, patch: pytest.MonkeyPatch) -> None:
    login = Path.home() / "login.json"
    login.write_text(json.dumps({"accessToken": VALUE}))
    await _with_profile(workbench, patch, copies=("login.json",))
    login.unlink()


async def _with_profile(workbench: Workbench, patch: pytest.MonkeyPatch, **settings: tuple[str, ...]) -> None:
    mine = Profile(name="mine", summary="mine", **settings)
    patch.setattr(profiles, "load", lambda *_: mine)
    await learn_secrets(workbench._ctx, request("mine"), {})


async def _reference(workbench: Workbench, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("THEIR_KEY", VALUE)
    server = {"command": "server", "env": {"X": "env://THEIR_KEY"}}
    definition = {"metadata": {"id": "one", "name": "One"}, "mcpServers": {"program": server}}
    await secrets.resolved(workbench._ctx, Definition.model_validate(definition))
    patch.delenv("THEIR_KEY")


async def _provider(workbench: Workbench, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("OPENAI_API_KEY", VALUE)
    await models.ready(workbench._ctx, None, "openai:gpt-5")
    patch.delenv("OPENAI_API_KEY")


WAYS: dict[str, Give] = {
    "a variable": _variable,
    "--secret": _said_to_be_secret,
    "passes": _passed,
    "copies": _copied,
    "a reference": _reference,
    "a provider": _provider,
}
SAID = [
    VALUE,
    f"KEY={VALUE}.",
    f"see ({VALUE})",
    "blue%2Bhorse%2F7%3Dco",
    base64.b64encode(VALUE.encode()).decode(),
]


async def recorded_text(workbench: Workbench, name: str) -> str:
    """All that is recorded of what an agent says."""
    agent, task = await admitted(workbench, name), await given.task(workbench)
    await given.done_by(workbench, agent, "claim_task", task)
    for said in SAID:
        await given.done_by(workbench, agent, "report_task_progress", task, progress_note=said)
    await given.done_by(workbench, agent, "complete_task", task, result_data={said: [said] for said in SAID})
    shown = [await given.task_now(workbench, task), await workbench.call("list_events", limit=1_000)]
    return json.dumps([*shown, await workbench.call("get_task_logs", task_id=task)], ensure_ascii=False)


def found_in(state: Path) -> list[str]:
    """The files below a state directory that hold the secret, or its encoded form."""
    forms = [VALUE.encode(), *(said.encode() for said in SAID[3:])]
    files = [file for file in state.rglob("*") if file.is_file() and file.parent.name != "environments"]
    return [str(file) for file in files if any(form in file.read_bytes() for form in forms)]


@pytest.mark.parametrize("way", WAYS)
async def test_a_secret_that_another_process_was_given_before_is_not_recorded(
    migrated: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    async with Workbench.open(migrated) as first:
        monkeypatch.setenv("HOME", str(tmp_path))
        await WAYS[way](first, monkeypatch)
    async with Workbench.open(migrated) as second:
        shown = await recorded_text(second, "ada")
        assert not any(said in shown for said in SAID)
        assert MASK in shown
    assert found_in(migrated.home) == []


async def test_a_process_learns_what_another_is_given_meanwhile(
    migrated: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Workbench.open(migrated) as first, Workbench.open(migrated) as second:
        await _variable(first, monkeypatch)
        await given.until(lambda: second._ctx.secrets.masked(VALUE) == MASK)
        assert VALUE not in await recorded_text(second, "ada")


async def test_the_oldest_marks_go_when_there_are_too_many(
    migrated: Settings, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_marks, "MOST", 2)
    async with Workbench.open(migrated, clock=clock) as first:
        for value in ("hunter1", "hunter2", "hunter1", "hunter3"):
            await secret_marks.learn(first._ctx, [value])
            first._ctx.secrets._marked.clear()
            clock.forward(1)
    async with Workbench.open(migrated, clock=clock) as second:
        assert second._ctx.secrets.masked("hunter1 hunter2 hunter3") == f"{MASK} hunter2 {MASK}"
