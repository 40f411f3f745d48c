from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.runner import Runner


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """`await run("echo hi")`, then look at `run.lines`."""
    place, scratch = tmp_path / "place", tmp_path / "scratch"
    place.mkdir()
    scratch.mkdir()
    return Runner(place, scratch)
