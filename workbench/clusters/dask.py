"""The Dask cluster of a sweep or an agent: one that runs, or one of this machine that lasts as long as the sweep."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import metadata
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from workbench.errors import Unavailable
from workbench.rules.sweeps.specification import LOCAL_CLUSTER
from workbench.system import uninterrupted

if TYPE_CHECKING:
    from distributed import Client, LocalCluster, Worker

PACKAGE = "workbench-agents"
EXTRA = f"{PACKAGE}[dask]"
ENCRYPTED = ("tls://", "wss://")
CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 10.0
SETUP_SECONDS = 120.0
"""Workers first import what they need."""
WORKERLESS_SECONDS = 60.0
"""How long a cluster that runs may be without workers: new ones take time to start."""
LOST_SECONDS = 20.0
"""How long a scheduler may be silent before it counts as lost."""


@contextmanager
def connected(address: str, workers: int) -> Iterator[Client]:
    """A client of a cluster.

    Args:
        address: of the scheduler, such as ``tcp://host:8786``, or `LOCAL_CLUSTER`.
        workers: of a cluster of this machine; each executes one run at a time.

    Raises:
        Unavailable: ``DASK_NOT_INSTALLED``, ``DASK_UNREACHABLE``.
    """
    require_installed()
    import distributed

    if address == LOCAL_CLUSTER:
        with _own_cluster(workers) as cluster, distributed.Client(cluster, set_as_default=False) as client:
            yield client
        return
    with _unreachable(address, CONNECT_SECONDS):
        with ThreadPoolExecutor(1) as thread:  # this one may have a loop
            thread.submit(asyncio.run, _identity(address, CONNECT_SECONDS)).result()
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    try:
        yield client
    finally:
        client.close(timeout=CLOSE_SECONDS)


def require_installed() -> None:
    """Check that Dask is here.

    Raises:
        Unavailable: ``DASK_NOT_INSTALLED``.
    """
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise Unavailable(
            "DASK_NOT_INSTALLED", f"{error.name or error} is not installed. Run `pip install '{EXTRA}'` here."
        ) from None


def identity(address: str, seconds: float) -> dict[str, Any]:
    """What a scheduler says of itself and its workers. Call it in a thread without an event loop.

    Raises:
        Unavailable: ``DASK_NOT_INSTALLED``, ``DASK_UNREACHABLE``.
    """
    require_installed()
    with _unreachable(address, seconds):
        return asyncio.run(_identity(address, seconds))


def answer(client: Client, function: Callable[..., Any], *args: Any, seconds: float, **options: Any) -> Any:
    """Call a function of a client that asks the scheduler, and wait at most `seconds` for the answer.

    Raises:
        TimeoutError: none came. Exception: what the function raises.
    """

    async def asked() -> Any:
        return await function(*args, **options)

    return client.sync(asked, callback_timeout=seconds)


def require_same_version(client: Client, who: str) -> None:
    """Refuse workers with another version of Workbench, or none, before they are sent anything of this one.

    Args:
        who: has this version, such as "the sweep".

    Raises:
        Unavailable: ``DASK_WORKER_UNFIT``.
    """
    own = metadata.version(PACKAGE)
    versions = answer(client, client.run, metadata.version, PACKAGE, on_error="return", seconds=SETUP_SECONDS)
    for address, version in versions.items():
        if version != own:
            theirs = f"Workbench {version}" if isinstance(version, str) else "no Workbench"
            raise Unavailable(
                "DASK_WORKER_UNFIT",
                f"The Dask worker {address} has {theirs}, and {who} {own}. Run there: pip install {PACKAGE}=={own}",
            )


def is_wanted(worker: Worker, tasks: Iterable[Any]) -> bool:
    """Whether a Dask worker still has to do tasks: it does not close, and none was cancelled, as Dask cancels the tasks
    of a client that leaves."""
    if worker.status.name in ("closing", "closed", "failed"):
        return False
    states = [worker.state.tasks.get(task) for task in tasks]
    return all(state is not None and state.state != "cancelled" for state in states)


@contextmanager
def _unreachable(address: str, seconds: float) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:  # the last two for an address that is none
        why = " ".join((str(error) or "no answer came").split())[:200]
        raise Unavailable(
            "DASK_UNREACHABLE",
            f"No Dask scheduler answers at {address} within {seconds:g} s: {why.rstrip('.')}. "
            "Start one there, or correct the address.",
        ) from None


async def _identity(address: str, seconds: float) -> dict[str, Any]:
    """What a scheduler answers: Dask's client waits for ever for one that accepts a connection but is silent.

    Raises:
        OSError, ValueError.
    """
    from distributed.core import rpc
    from distributed.security import Security

    arguments = Security().get_connection_args("client")
    if address.startswith(ENCRYPTED) and arguments.get("ssl_context") is None:
        raise ValueError("Dask's configuration here names no certificates (distributed.comm.tls)")
    async with asyncio.timeout(seconds), rpc(address, connection_args=arguments) as scheduler:
        told: dict[str, Any] = await scheduler.identity(n_workers=-1)
    if told["type"] != "Scheduler":
        raise ValueError(f"it is the address of a {told['type']}")
    return told


@contextmanager
def scheduler_options(asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Options for a scheduler that starts in this block. It serves no pages unless they are asked for.

    Dask serves them at port 8787, of which there is one, to whoever can reach it and without encryption.

    Args:
        asked: options that the scheduler has in any case.
    """
    import dask

    if "dashboard" in asked or "dashboard_address" in asked:
        yield dict(asked)
    else:
        with dask.config.set({f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker")}):
            yield {"dashboard": False, "dashboard_address": "127.0.0.1:0", **asked}


@contextmanager
def _own_cluster(workers: int) -> Iterator[LocalCluster]:
    """A cluster of processes of this machine that no other user can reach, because a scheduler runs anyone's code.

    An interrupt is for the sweep, which ends its runs: the workers begin with SIGINT blocked, until they ignore it.
    """
    from distributed import LocalCluster

    resource_tracker.ensure_running()  # it unblocks SIGINT in the thread that starts it
    with (
        uninterrupted.sigint_blocked() as mask,
        scheduler_options({}) as options,
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            security=True,
            scheduler_kwargs=options,
            memory_limit=0,  # the runs have limits, and their kernels are processes of their own
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # raises an interrupt that came meanwhile
        yield cluster
