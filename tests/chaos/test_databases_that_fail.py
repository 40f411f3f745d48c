"""A project whose database fails in the middle of work: who works goes on by itself, and keeps what it has claimed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests import given
from tests.conftest import Admitted, admitted
from tests.postgres import SUPERUSER, NewServer, directory_within_reach, running_server
from tests.small_disk import fill, small_disk
from workbench.app import Workbench
from workbench.errors import Unavailable
from workbench.model import SECOND
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.chaos, pytest.mark.postgres]

LEASE_SECONDS = 6.0
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
HOUR = 3_600


@asynccontextmanager
async def at_work(project: Path, url: str, lease: float = 300) -> AsyncIterator[tuple[Workbench, Admitted, int]]:
    """A served project, and an agent that has claimed a task."""
    settings = Settings(project=project, port=0, database_url=url, lease_seconds=lease, retry_base_seconds=0)
    async with Workbench.open(settings) as workbench, Servers(workbench) as servers:
        await servers.start(0)
        ada = await admitted(workbench, "ada")
        task = await given.task(workbench)
        await given.claim(workbench, ada, task)
        yield workbench, ada, task


async def finish(workbench: Workbench, agent: Admitted, task: int) -> None:
    """Complete the task, which was claimed once."""
    await workbench.dispatch(agent.caller, "complete_task", {"task_id": task})
    attempts = (await given.task_now(workbench, task))["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == ["completed"]


async def test_no_lease_ends_because_the_database_was_away(repository: Path, new_postgres_server: NewServer) -> None:
    server = new_postgres_server()
    async with at_work(repository, server.url(), LEASE_SECONDS) as (workbench, ada, task):
        server.kill()
        await asyncio.sleep(LEASE_SECONDS + 1)
        await asyncio.to_thread(server.start)
        await given.until(lambda: answers(workbench))
        await asyncio.sleep(2)  # leases that are over end meanwhile
        await finish(workbench, ada, task)


async def test_the_clock_of_the_database_may_be_set_forward_and_back(repository: Path, postgres_binaries: Path) -> None:
    if FAKETIME is None:
        pytest.skip("libfaketime is not installed (Debian: faketime)")
    with ExitStack() as stack:
        ahead = stack.enter_context(directory_within_reach()) / "ahead"
        ahead.write_text("+0")
        faked = [f"LD_PRELOAD={FAKETIME}", f"FAKETIME_TIMESTAMP_FILE={ahead}", "FAKETIME_NO_CACHE=1"]
        server = stack.enter_context(running_server(postgres_binaries, "fsync=off", within=["env", *faked]))
        async with at_work(repository, server.url(), lease=20) as (workbench, ada, task):
            times = []
            for seconds in (0, 2 * HOUR, -2 * HOUR, 0):
                ahead.write_text(f"{seconds:+}")
                for _ in range(5):
                    times.append(await workbench.store.write(lambda tx: tx.now))
                    await asyncio.sleep(0.3)
            assert times == sorted(times)
            assert times[-1] - times[0] > HOUR * SECOND
            await finish(workbench, ada, task)


async def test_a_standby_that_takes_over_has_what_was_acknowledged(
    repository: Path, tmp_path: Path, postgres_binaries: Path
) -> None:
    with (
        running_server(postgres_binaries, "fsync=off", "synchronous_standby_names=*") as first,
        running_server(postgres_binaries, "fsync=off", "hot_standby=on", standby_of=first) as second,
    ):
        both = f"postgresql://{SUPERUSER}@/postgres?host={first.home},{second.home}&target_session_attrs=read-write"
        async with at_work(repository, both) as (workbench, ada, task):
            done: list[int] = []
            adding = asyncio.create_task(add(workbench, done))
            await given.until(lambda: len(done) > 20)
            await asyncio.to_thread(first.kill)
            await asyncio.to_thread(second.promote)
            before = len(done)
            await given.until(lambda: len(done) > before + 20)
            adding.cancel()
            there = [row[0] for row in await given.rows(workbench, "SELECT id FROM tasks")]
            assert set(done) <= set(there)
            await finish(workbench, ada, task)


async def add(workbench: Workbench, done: list[int]) -> None:
    """Add tasks until cancelled; the ids of those that were acknowledged."""
    while True:
        with suppress(Unavailable):
            done.append(await given.task(workbench))


async def test_a_full_disk_of_the_database_refuses_changes_until_there_is_space(
    repository: Path, postgres_binaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with directory_within_reach() as place, small_disk(place / "disk", 160) as disk:
        disk.chmod(0o755)
        monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(disk))
        with running_server(postgres_binaries, "wal_recycle=off", "min_wal_size=32MB", "max_wal_size=32MB") as server:
            async with at_work(repository, server.url()) as (workbench, ada, task):
                fill(disk, 1_000_000)
                said = await given.until(lambda: overfilled(workbench))
                print(said)
                (disk / "filler").unlink()
                await given.until(lambda: answers(workbench))
                await given.task(workbench)
                await finish(workbench, ada, task)


async def overfilled(workbench: Workbench) -> str:
    """What is said when there is no space for a large change; empty as long as there is."""
    try:
        await given.task(workbench, description="x" * 50_000)
    except Unavailable as error:
        return str(error)
    return ""


async def answers(workbench: Workbench) -> bool:
    """Whether the store takes changes."""
    with suppress(Unavailable):
        return bool(await given.task(workbench))
    return False
