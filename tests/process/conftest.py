"""A stage for the processes of each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.stage import Stage
from workbench.process import ProcessTable


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, ProcessTable())
    yield stage
    for ref in stage.refs:
        stage.table.terminate(ref, 0)
