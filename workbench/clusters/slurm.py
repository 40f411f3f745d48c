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
            raise Unavailable(
                "SLURM_FAILED", f"Slurm does not take the jobs of the machine {name}: {_why(error)}"
            ) from None
        with distributed.Client(jobs, set_as_default=False) as client:
            yield client


def cluster(name: str, machine: SlurmMachine) -> SLURMCluster:
    """The cluster, without jobs yet. Its connections are encrypted, because a scheduler runs anyone's code.

    Its scheduler serves no pages unless the machine's `scheduler_options` ask for them.

    Raises:
        BadInput: ``BAD_MACHINE``: dask-jobqueue does not take its options.
    """
    from dask import config
    from dask_jobqueue import SLURMCluster

    options: dict[str, Any] = {"security": True, "shared_temp_directory": str(home())} | machine.options
    try:
        asked = options.pop("scheduler_options", config.get("jobqueue.slurm.scheduler-options", {}))
        with dask.scheduler_options(asked) as scheduler:
            return SLURMCluster(cores=machine.cores, memory=machine.memory, scheduler_options=scheduler, **options)
    except Exception as error:  # of any type, as its options are of any
        raise BadInput(
            "BAD_MACHINE",
            f"dask-jobqueue does not take the machine {name}: {_why(error)}. Correct it in the settings.",
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


def _why(error: BaseException) -> str:
    """What an error began with. A KeyError says no more than a key."""
    while (first := error.__cause__ or error.__context__) is not None and not isinstance(first, KeyError):
        error = first
    return " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
