"""A served project with a conversation, whose model is the scripted one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Served
from workbench.app import Workbench
from workbench.state.settings import Settings


class Chat:
    """A conversation, as its person uses it."""

    def __init__(self, workbench: Workbench, conversation_id: str) -> None:
        self.workbench = workbench
        self.id = conversation_id
        self.read = 0

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return await self.workbench.call(name, conversation_id=self.id, **arguments)

    async def send(self, content: str) -> dict[str, Any]:
        """Ask something without waiting for the answer."""
        return await self.call("ask", content=content)

    async def until(self, *types: str) -> list[dict[str, Any]]:
        """The next frames, up to one of some types."""
        found: list[dict[str, Any]] = []
        while not found or found[-1]["type"] not in types:
            page = await self.call("read_frames", after=self.read, wait_seconds=30, limit=1)
            found += page["frames"]
            self.read = found[-1]["number"] if found else self.read
        return found

    async def ended(self) -> list[dict[str, Any]]:
        return await self.until("complete", "error")

    async def ask(self, content: str) -> dict[str, Any]:
        """Ask something and wait for its answer."""
        await self.send(content)
        await self.ended()
        return (await self.turns())[-1]

    async def retry(self, **more: Any) -> dict[str, Any]:
        """Retry the last answer; the new one."""
        await self.call("retry_answer", **more)
        await self.ended()
        return (await self.turns())[-1]

    async def turns(self, **more: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.call("list_turns", **more))["turns"]
        return found


def define(settings: Settings, script: list[dict[str, Any]], name: str = "helper", more: str = "") -> str:
    """Write a definition whose model follows a script; its path."""
    path = settings.home / "agents" / name / "agent.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"metadata:\n  id: {name}\n  name: {name.title()}\n"
        f"settings:\n  model: test:script\n  script: {json.dumps(script)}\n{more}"
    )
    return f"./agents/{name}"


@pytest.fixture
def begin(served: Served, settings: Settings) -> Callable[..., Any]:
    """`await begin([{"say": "Hello."}])`: a conversation with a definition whose model follows a script."""

    async def begun(script: list[dict[str, Any]] | None = None, more: str = "", **choices: Any) -> Chat:
        about: dict[str, Any] = (
            {"model": choices.pop("model", "test:echo")}
            if script is None
            else {"definition": define(settings, script, more=more)}
        )
        conversation = await served.workbench.call("create_conversation", **about | choices)
        return Chat(served.workbench, conversation["id"])

    return begun
