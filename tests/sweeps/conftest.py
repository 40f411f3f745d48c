"""A project that is served for all sweeps of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import git
from tests.sweeps.lab import SweepLab
from workbench.cli.sweeps.connection import connected
from workbench.settings import Settings


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SweepLab]:
    """See `SweepLab`."""
    place = tmp_path_factory.mktemp("sweeps")
    git("init", "-q", "-b", "main", cwd=place)
    settings = Settings(project=place, port=0, max_sweep_output_bytes=100_000)
    with connected(settings) as call:
        yield SweepLab(settings, call)
