"""A server is killed while it tells the person: her webhook gets no question twice, and what it may lack is said."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.chance import SOAK, chance
from tests.chaos.test_kill_matrix import Project, Victim
from tests.services.notifications.test_notifications import hooked

pytestmark = [pytest.mark.anyio, pytest.mark.chaos, pytest.mark.usefixtures("database")]

ROUNDS = 20 * SOAK or 3


@pytest.mark.timeout(600 if SOAK else 120)
async def test_the_webhook_gets_no_question_twice_however_the_server_is_killed(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hooked() as hook:
        monkeypatch.setenv("WORKBENCH_NOTIFY_WEBHOOK", hook.address)
        monkeypatch.setenv("WORKBENCH_NOTIFY_DIGEST_SECONDS", "0")
        hook.pause = 0.3
        project = Project(repository, chance())
        for number in range(ROUNDS):
            project.serve(Victim.SERVER)
            await project.call("register", name=f"agent-{number}")
            if is_cut_off := number % 2 == 0:
                await hook.next()  # it has not answered yet
            await asyncio.sleep(project.random.random() * hook.pause * (0.5 if is_cut_off else 2))
            assert project.server is not None
            project.server.kill()
            await asyncio.to_thread(project.server.wait)
        project.serve(Victim.SERVER)
        messages: list[dict[str, Any]] = []
        while (
            any(told["webhook"] == "waiting" for told in messages)
            or sum(len(told["items"]) for told in messages) < ROUNDS
        ):
            messages = (await project.call("list_notifications"))["notifications"]
            await asyncio.sleep(0.05)
        project.server.terminate()
        await asyncio.to_thread(project.server.wait)
    got = [item["subject"] for _, body in hook.calls for item in body["items"]]
    assert len(got) == len(set(got)) <= ROUNDS
    cut_off = [item["subject"] for told in messages if told["webhook"] == "failed" for item in told["items"]]
    assert cut_off, "no delivery was cut off"
    assert {told["error_code"] for told in messages if told["webhook"] == "failed"} == {"NOTIFY_INTERRUPTED"}
    assert set(got) | set(cut_off) == {f"approval:{number}" for number in range(1, ROUNDS + 1)}
