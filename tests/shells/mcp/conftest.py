"""What tests of MCP are given: both eras of the protocol, and tools that they control."""

from __future__ import annotations

import pytest

from tests.shells.mcp.catalogue import tools
from tests.shells.mcp.sessions import ERAS

__all__ = ["tools"]


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """The mode of the client that leads to a version of the protocol."""
    return str(request.param)
