"""A server is killed in the middle of an answer: no frame that a reader had is lost, and the answer can be retried."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chance import SOAK, chance
from tests.chaos.test_kill_matrix import Project, Victim
from tests.services.conversations.conftest import define
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.chaos]

ROUNDS = 10 * SOAK or 1
WORDS = [{"say": " ".join(f"word{n}" for n in range(2_000)), "pause": 0.005}]


@pytest.fixture
def project(repository: Path, settings: Settings) -> Iterator[Project]:
    made = Project(repository, chance())
    made.serve(Victim.SERVER)
    yield made
    kill(made)


def kill(project: Project) -> None:
    """Kill the server of a project."""
    assert project.server is not None
    project.server.kill()
    project.server.wait()


@pytest.mark.timeout(240)
async def test_the_next_server_finds_every_frame_that_a_reader_had(project: Project, settings: Settings) -> None:
    path = define(settings, WORDS)
    for _ in range(ROUNDS):
        conversation = (await project.call("create_conversation", definition=path))["id"]
        await project.call("ask", conversation_id=conversation, content="Count")
        had = await read(project, conversation, 0, project.random.randint(2, 30))
        await asyncio.to_thread(kill, project)
        project.serve(Victim.SERVER)
        rest = await read(project, conversation, had[-1]["number"], None)
        frames = had + rest
        assert [frame["number"] for frame in frames] == list(range(1, len(frames) + 1))
        assert (frames[-1]["type"], frames[-1]["data"]["code"]) == ("error", "ANSWER_INTERRUPTED")
        answer = (await project.call("list_turns", conversation_id=conversation))["turns"][-1]
        text = "".join(frame["data"]["content"] for frame in frames if frame["type"] == "token")
        assert (answer["state"], answer["content"]) == ("interrupted", text)
        await project.call("retry_answer", conversation_id=conversation, turn_id=answer["id"])
        await project.call("stop_answer", conversation_id=conversation)


async def read(project: Project, conversation: str, after: int, count: int | None) -> list[dict[str, Any]]:
    """The frames after one: at least so many, or, with None, all up to the end of the answer."""
    found: list[dict[str, Any]] = []
    while True:
        page = await project.call("read_frames", conversation_id=conversation, after=after, wait_seconds=20)
        found += page["frames"]
        after = page["next_after"]
        if count is None and found and found[-1]["type"] == "error":
            return found
        if count is not None and len(found) >= count:
            return found
