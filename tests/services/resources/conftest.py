"""A project with two GPUs, of 8 and 16 GB, whose devices are files, and a clock that only the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Clock
from workbench.app import Workbench
from workbench.state.settings import Settings


@pytest.fixture
def devices(tmp_path: Path) -> list[Path]:
    """The files that stand in for the devices of two GPUs."""
    paths = [tmp_path / f"device{number}" for number in range(2)]
    for path in paths:
        path.touch()
    return paths


@pytest.fixture
def settings(settings: Settings, devices: list[Path]) -> Settings:
    """What the project has."""
    gpus = [{"name": f"gpu{n}", "vram": f"{8 << n}G", "devices": [str(path)]} for n, path in enumerate(devices)]
    resources = {"gpus": gpus, "cpu": 8, "memory": "16G", "licenses": {"matlab": 1}, "microscope": 1}
    return settings.model_copy(update={"resources": resources, "retry_base_seconds": 0.0})


@pytest.fixture
async def workbench(migrated: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    """An open project whose time the test moves."""
    async with Workbench.open(migrated, clock=clock) as opened:
        yield opened
