from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import with_store
from tests.worker.runner import Runner
from workbench.state.settings import Settings


@pytest.fixture
def settings(settings: Settings, empty_store: Path) -> Settings:
    """The settings of a project in which nothing has happened."""
    return with_store(settings, empty_store)


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """`await run("echo hi")`, then look at `run.lines`."""
    place, scratch = tmp_path / "place", tmp_path / "scratch"
    place.mkdir()
    scratch.mkdir()
    return Runner(place, scratch)
