"""Agents that do the tasks of these tests."""

from __future__ import annotations

import pytest

from tests.conftest import Admit, Admitted


@pytest.fixture
async def ada(admit: Admit) -> Admitted:
    """An implementer."""
    return await admit("ada")


@pytest.fixture
async def bob(admit: Admit) -> Admitted:
    """Another one."""
    return await admit("bob")
