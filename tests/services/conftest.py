"""Settings of a project that already has a store, for the tests of services."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import with_store
from workbench.state.settings import Settings


@pytest.fixture
def settings(settings: Settings, empty_store: Path) -> Settings:
    """The settings of a project in which nothing has happened."""
    return with_store(settings, empty_store)
