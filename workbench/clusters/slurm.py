"""Jobs of Slurm that form a Dask cluster as long as a sweep needs them; dask-jobqueue submits and ends them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from workbench.clusters import dask
from workbench.errors import BadInput, Unavailable
from workbench.state.home import home
from workbench.state.machine import SlurmMachine

if TYPE_CHECKING:
    from dask_jobqueue import SLURMCluster
    from distributed import Client

EXTRA = "workbench-agents[slurm]"
SUBMITS = "sbatch"


@contextmanager
def connected(name: str, machine: SlurmMachine) -> Iterator[Client]:
    """A client of a cluster whose jobs are submitted now, and ended after the block.

    Raises:
        Unavailable: see `require_possible`; ``SLURM_FAILED``. BadInput: ``BAD_MACHINE``.
    """
    require_possible(name)
    import distributed

    with cluster(name, machine) as jobs:
        try:
            jobs.scale(jobs=machine.jobs)
        except (OSError, RuntimeError) as error:
            why = " ".join(str(error).split())[:300]
            raise Unavailable("SLURM_FAILED", f"Slurm does not take the jobs of the machine {name}: {why}") from None
        with distributed.Client(jobs, set_as_default=False) as client:
            yield client


def cluster(name: str, machine: SlurmMachine) -> SLURMCluster:
    """The cluster, without jobs yet. Its connections are encrypted, because a scheduler runs anyone's code.

    Raises:
        BadInput: ``BAD_MACHINE``: dask-jobqueue does not take its options.
    """
    from dask_jobqueue import SLURMCluster

    given: dict[str, Any] = {"security": True, "shared_temp_directory": str(home())} | machine.options
    try:
        return SLURMCluster(cores=machine.cores, memory=machine.memory, **given)
    except (TypeError, ValueError) as error:
        raise BadInput(
            "BAD_MACHINE", f"dask-jobqueue does not take the machine {name}: {error}. Correct it in the settings."
        ) from None


def require_possible(name: str) -> None:
    """Check that jobs can be submitted from here.

    Raises:
        Unavailable: ``DASK_NOT_INSTALLED``, ``SLURM_NOT_HERE``.
    """
    dask.require_installed()
    try:
        import dask_jobqueue  # noqa: F401
    except ImportError:
        raise Unavailable(
            "DASK_NOT_INSTALLED", f"dask_jobqueue is not installed, which {name} needs. Run `pip install '{EXTRA}'`."
        ) from None
    if shutil.which(SUBMITS) is None:
        raise Unavailable(
            "SLURM_NOT_HERE",
            f"{SUBMITS} is not on this machine, so that {name} gets no jobs. Run this where Slurm's commands are, such "
            "as on its login node.",
        )
