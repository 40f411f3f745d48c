"""Fixtures of the tests of MCP: both eras of the protocol, and tools that tests control."""

from __future__ import annotations

import pytest

from tests.conftest import Admit, Admitted
from tests.shells.mcp.catalogue import tools
from tests.shells.mcp.sessions import ERAS

__all__ = ["tools"]


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """The mode of the client that leads to a version of the protocol."""
    return str(request.param)


@pytest.fixture
async def ada(admit: Admit) -> Admitted:
    """An agent that is offered every tool."""
    agent: Admitted = await admit("ada", tools=["*"])
    return agent
