"""Task queues on PostgreSQL that do what a claim and a completion do, called as their own workers call them.

What they take and finish is as durable as the server's settings make it: theirs stay as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, Protocol
from uuid import uuid4

BATCH = 16
WORKERS = 4
"""Of pgqueuer; with more of them, one process is not faster."""
JOBS = 64
"""Of procrastinate at the same time, on fewer connections."""
CONNECTIONS = 16


class Queue(Protocol):
    """The calls of a peer that are measured."""

    async def fill(self, tasks: int) -> None:
        """Add tasks."""
        ...

    async def drain(self) -> list[int]:
        """Take tasks, do nothing, and say that they are done, until there is none left; their numbers."""
        ...


class PgQueuer:
    """pgqueuer: `dequeue` takes a batch, and `log_jobs` says that all of it is done."""

    def __init__(self, connections: list[Any]) -> None:
        from pgqueuer.queries import Queries

        self.queries = [Queries.from_asyncpg_connection(connection) for connection in connections]

    async def fill(self, tasks: int) -> None:
        await self.queries[0].enqueue(["work"] * tasks, [None] * tasks, [0] * tasks)

    async def drain(self) -> list[int]:
        return [number for done in await asyncio.gather(*map(self._work, self.queries)) for number in done]

    async def _work(self, queries: Any) -> list[int]:
        from pgqueuer.ports.repository import EntrypointExecutionParameter

        manager, unlimited = uuid4(), {"work": EntrypointExecutionParameter(concurrency_limit=0)}
        done: list[int] = []
        while jobs := await queries.dequeue(BATCH, unlimited, manager, None, timedelta(seconds=30)):
            await queries.log_jobs([(job, "successful", None) for job in jobs])
            done += [job.id for job in jobs]
        return done


@asynccontextmanager
async def pgqueuer(url: str) -> AsyncIterator[Queue]:
    """pgqueuer in an empty database."""
    import asyncpg

    async with AsyncExitStack() as stack:
        connections = [await asyncpg.connect(url) for _ in range(WORKERS)]
        for connection in connections:
            stack.push_async_callback(connection.close)
        queue = PgQueuer(connections)
        await queue.queries[0].install()
        yield queue


class Procrastinate:
    """procrastinate: `fetch_job` takes one, and `finish_job` says that it is done."""

    def __init__(self, manager: Any, worker_id: int) -> None:
        self._manager = manager
        self._worker_id = worker_id

    async def fill(self, tasks: int) -> None:
        from procrastinate.jobs import Job

        await self._manager.batch_defer_jobs_async(
            [Job(queue="q", lock=None, queueing_lock=None, task_name="t")] * tasks
        )

    async def drain(self) -> list[int]:
        return [number for done in await asyncio.gather(*(self._work() for _ in range(JOBS))) for number in done]

    async def _work(self) -> list[int]:
        from procrastinate.jobs import Status

        done: list[int] = []
        while (job := await self._manager.fetch_job(None, self._worker_id)) is not None:
            await self._manager.finish_job(job, Status.SUCCEEDED, delete_job=False)
            done.append(job.id)
        return done


@asynccontextmanager
async def procrastinate(url: str) -> AsyncIterator[Queue]:
    """procrastinate in an empty database."""
    from procrastinate import App, PsycopgConnector

    async with App(connector=PsycopgConnector(conninfo=url, max_size=CONNECTIONS)).open_async() as app:
        await app.schema_manager.apply_schema_async()
        yield Procrastinate(app.job_manager, await app.job_manager.register_worker())


PEERS = {"pgqueuer": pgqueuer, "procrastinate": procrastinate}
