"""A definition in an open project, and calls about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import given
from workbench.app import Workbench


async def create(workbench: Workbench, name: str = "reviewer", **more: Any) -> dict[str, Any]:
    """Create a definition in the directory of its name."""
    return await workbench.call("agent_create", agentPath=f"./agents/{name}", name=name, **more)


async def versions(workbench: Workbench) -> list[tuple[str, str]]:
    """The events of definitions: kind and summary."""
    page = await workbench.call("list_events", kinds=["definition.*"])
    return [(event["kind"], event["data"]["summary"]) for event in page["events"]]


async def refused(code: str, workbench: Workbench, name: str, /, **arguments: Any) -> str:
    """Code and message of the error of a code that a call ends with."""
    error = await given.refusal(workbench.call(name, **arguments))
    assert error.code == code
    return str(error)


class Reviewer:
    """The definition `reviewer`."""

    def __init__(self, workbench: Workbench) -> None:
        self.workbench = workbench
        self.folder: Path = workbench.settings.home / "agents" / "reviewer"
        self.file = self.folder / "agent.yaml"

    async def __call__(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call an operation on it."""
        return await self.workbench.call(name, **{"agentTarget": "reviewer", **arguments})

    async def refused(self, code: str, name: str, /, **arguments: Any) -> str:
        """Code and message of the error of a code that a call of an operation on it ends with."""
        return await refused(code, self.workbench, name, **{"agentTarget": "reviewer", **arguments})

    def append(self, text: str) -> None:
        """Add sections to its file, as an editor does."""
        self.file.write_text(self.file.read_text() + text)


@pytest.fixture
async def reviewer(workbench: Workbench) -> Reviewer:
    """See `Reviewer`; it is new."""
    await create(workbench)
    return Reviewer(workbench)
