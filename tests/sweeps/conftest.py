"""Projects that are served for all sweeps of a module, and a Dask cluster for those that use one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import git
from tests.sweeps.lab import SweepLab
from workbench.shells.meanwhile import connected
from workbench.state.settings import Settings


@contextmanager
def opened(place: Path, dask: str | None = None) -> Iterator[SweepLab]:
    """A project that is served."""
    git("init", "-q", "-b", "main", cwd=place)
    settings = Settings(project=place, port=0, max_sweep_output_bytes=100_000)
    with connected(settings) as call:
        yield SweepLab(settings, call, dask)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SweepLab]:
    """A lab whose runs are executed by threads."""
    with opened(tmp_path_factory.mktemp("sweeps")) as lab:
        yield lab


@pytest.fixture(scope="module", params=["threads", "dask"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SweepLab]:
    """A lab whose runs are executed by threads, and one whose runs are executed by a Dask cluster."""
    dask = request.getfixturevalue("scheduler") if request.param == "dask" else None
    with opened(tmp_path_factory.mktemp("sweeps"), dask) as lab:
        yield lab


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a Dask cluster with two workers, which gives up a run when its worker dies for the second time."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    import dask

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
    ):
        yield cluster.scheduler_address
