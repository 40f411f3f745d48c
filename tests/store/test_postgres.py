"""The store on PostgreSQL when its server, the way to it, or its address fails."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

from tests.cutting_proxy import Cut, CuttingProxy, cutting_proxy
from tests.postgres import SUPERUSER, NewServer, PostgresServer
from tests.small_disk import fill, small_disk
from tests.store.contract.conftest import MAKE, add, added, count, queue_held, queued, texts
from workbench.errors import BadInput, Conflict, Unavailable, WorkbenchError
from workbench.store import postgres_connection
from workbench.store.base import Store, Tx
from workbench.store.feed import Feed
from workbench.store.migrate import Script, migrate, scripts
from workbench.store.opening import open_store
from workbench.store.queries import Query

pytestmark = [pytest.mark.postgres, pytest.mark.anyio]

SECRET = "s3cr3t-pass"
WRONG = Query("wrong", "INSERT INTO nowhere (text) VALUES (:text)")


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    """An open store with a table of notes."""
    with closing(open_store(postgres_url)) as store:
        asyncio.run(store.write(lambda tx: tx.run(MAKE)))
        yield store


def refusal(url: str) -> WorkbenchError:
    """How a database is refused: in a line that does not repeat the password."""
    with pytest.raises(WorkbenchError) as error:
        open_store(url)
    said = f"{error.value} {json.dumps(error.value.details)} {error.value.__cause__!r}"
    assert SECRET not in said
    assert "\n" not in said
    return error.value


# What is wrong when it is opened.


def test_a_wrong_password_user_database_or_place_is_refused_with_what_to_correct(
    postgres_server: PostgresServer,
) -> None:
    home = postgres_server.home
    for url, code, said in (
        (postgres_server.url(user="nobody", password=SECRET), "DATABASE_REFUSES_USER", "nobody"),
        (postgres_server.url("nothing"), "DATABASE_MISSING", "createdb"),
        (f"postgresql://a:{SECRET}@/x?host={home / 'nowhere'}", "STORE_UNAVAILABLE", "No such file"),
        (f"postgresql://a:{SECRET}@127.0.0.1:1/x", "STORE_UNAVAILABLE", "refused"),
        (f"postgresql://a:{SECRET}@127.0.0.1:x{SECRET}/x", "DATABASE_URL_INVALID", "database_url"),
        (f"postgresql://a:@{SECRET}@127.0.0.1/x", "DATABASE_URL_INVALID", "database_url"),
        (f"host={home} {SECRET}", "DATABASE_URL_INVALID", "database_url"),
        (f"service={home} password={SECRET}", "STORE_UNREADABLE", "service"),
    ):
        error = refusal(url)
        assert error.code == code
        assert said in error.message
    with postgres_server.new_role("right") as role:
        error = refusal(postgres_server.url(user=role, password=SECRET))
    assert error.code == "DATABASE_REFUSES_USER"
    assert "password authentication failed" in error.message


def test_a_user_who_may_not_make_tables_is_refused(postgres_server: PostgresServer) -> None:
    with postgres_server.new_role(SECRET) as reader, postgres_server.new_database() as name:
        with postgres_server.connect(name) as connection:
            connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        assert refusal(postgres_server.url(name, reader, SECRET)).code == "STORE_REFUSED"
        assert "search_path" in refusal(f"{postgres_server.url(name)}&options=-csearch_path%3Dnone").message


def test_a_server_that_only_reads_or_writes_no_utf8_is_refused(postgres_server: PostgresServer) -> None:
    with postgres_server.new_database() as name:
        with postgres_server.connect(name) as connection:
            connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        assert refusal(postgres_server.url(name)).code == "STORE_READ_ONLY"
    with postgres_server.connect() as connection:
        connection.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
        error = refusal(postgres_server.url("latin"))
        connection.execute("DROP DATABASE latin")
    assert error.code == "STORE_UNREADABLE"
    assert "LATIN1" in error.message


def test_an_old_server_is_refused_with_its_version_and_the_one_that_is_needed() -> None:
    with pytest.raises(Unavailable, match=r"^POSTGRES_TOO_OLD: .*PostgreSQL 13; .* 14"):
        postgres_connection._require_fit(130_012, "UTF8", 0)


@pytest.mark.long
def test_a_server_without_free_connections_is_refused(new_postgres_server: NewServer) -> None:
    server = new_postgres_server("max_connections=2", "superuser_reserved_connections=1", "max_wal_senders=0")
    with server.connect() as connection:
        connection.execute(f"CREATE ROLE ada LOGIN PASSWORD '{SECRET}'")
        assert refusal(server.url(user="ada", password=SECRET)).code == "STORE_CROWDED"


def test_the_schema_of_a_newer_workbench_is_refused(postgres_url: str) -> None:
    newer = [*scripts(), Script("999_newer", "CREATE TABLE newer (x TEXT);")]
    with closing(postgres_connection.Connector(postgres_url).connect()) as db:
        assert migrate(db, newer, 0) == ["999_newer"]
    with pytest.raises(Conflict, match=r"^MIGRATION_UNKNOWN: .*999_newer"):
        open_store(postgres_url)


def test_a_script_that_fails_leaves_nothing_behind_and_is_written_down(postgres_url: str) -> None:
    broken = Script("999_broken", "CREATE TABLE two (x TEXT);\nINSERT INTO nowhere VALUES (1);")
    with closing(postgres_connection.Connector(postgres_url).connect()) as db:
        with pytest.raises(Unavailable, match=r"^MIGRATION_FAILED: .*nowhere"):
            migrate(db, [*scripts(), broken], 7)
        assert db.query(Query("two", "SELECT to_regclass('two') IS NULL")) == [(1,)]
        failed = Query("failed", "SELECT migration_name, applied_at FROM migration_history WHERE success = 0")
        assert db.query(failed) == [("999_broken", 7)]
    open_store(postgres_url).close()


async def test_processes_that_open_an_empty_database_at_once_migrate_it_once(postgres_server: PostgresServer) -> None:
    with postgres_server.new_database() as name:
        url = postgres_server.url(name)
        stores = await asyncio.gather(*(asyncio.to_thread(open_store, url) for _ in range(4)))
        assert sorted(script for store in stores for script in store.migrated) == [one.name for one in scripts()]
        for store in stores:
            store.close()


# Connections that are lost.


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[CuttingProxy]:
    """A proxy before the server."""
    with cutting_proxy(postgres_server.socket) as proxy:
        yield proxy


@pytest.mark.parametrize("when", Cut)
@pytest.mark.parametrize("changes", [1, 5])
async def test_a_commit_whose_answer_is_lost_is_made_once(
    store: Store, postgres_url: str, proxy: CuttingProxy, when: Cut, changes: int
) -> None:
    database = postgres_url.partition("@/")[2].partition("?")[0]
    with closing(open_store(proxy.url(database, SUPERUSER))) as cut:
        told: list[str] = []
        cut.on_commit(lambda events: told.extend(event["subject"] for event in events))
        await cut.write(add("before"))
        async with queue_held(cut):
            tasks = await queued(*(cut.write(add(f"note {n}")) for n in range(changes)))
            proxy.cut(when, later=1)  # the first one is of the change that holds the queue
        await asyncio.gather(*tasks)
        await cut.write(add("after"))
    wanted = ["before", *(f"note {n}" for n in range(changes)), "after"]
    assert await store.read(texts) == await added(store) == wanted
    assert told == [f"note:{text}" for text in wanted]


@pytest.mark.long
async def test_a_server_that_is_killed_and_started_again_keeps_what_was_acknowledged(
    new_postgres_server: NewServer,
) -> None:
    server = new_postgres_server("fsync=on")
    kept: list[str] = []

    async def write(name: str) -> None:
        for number in range(10_000):
            if len(kept) >= enough:
                return
            with suppress(Unavailable):  # what was not made, or perhaps
                await store.write(add(f"{name} {number}"))
                kept.append(f"{name} {number}")

    with closing(open_store(server.url())) as store:
        await store.write(lambda tx: tx.run(MAKE))
        for round_ in range(3):
            enough = len(kept) + 100
            writing = asyncio.gather(*(write(f"{round_} {name}") for name in "abcd"))
            while len(kept) < enough - 50:
                await asyncio.sleep(0)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            await writing
            assert await store.read(count) >= len(kept)
        there, events = await store.read(texts), await added(store)
    assert set(kept) <= set(there)
    assert there == events
    assert len(set(there)) == len(there)


@pytest.mark.long
async def test_without_a_server_every_request_is_refused_soon_and_can_be_repeated(
    new_postgres_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_connection, "PATIENCE_SECONDS", 0.05)
    server = new_postgres_server()
    with closing(open_store(server.url())) as store:
        await store.write(lambda tx: tx.run(MAKE))
        server.stop()
        for request in (store.write(add("lost")), store.read(count), store.write(add("lost"))):
            with pytest.raises(Unavailable, match=r"^STORE_UNAVAILABLE: .*Start the server"):
                await request
        server.start()
        await store.write(add("kept"))
        assert await store.read(texts) == ["kept"]


async def test_connections_that_were_lost_while_idle_are_opened_again(store: Store, postgres_server: Any) -> None:
    with postgres_server.connect() as connection:
        for _ in range(2):
            await store.write(add("a"))
            assert await asyncio.gather(*(store.read(count) for _ in range(8))) == [await store.read(count)] * 8
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'wb%'")
            assert await asyncio.gather(*(store.read(count) for _ in range(8))) == [await store.read(count)] * 8
            await store.write(lambda tx: tx.run(Query("clear", "DELETE FROM notes")))


async def test_a_writer_that_waits_too_long_for_the_others_is_told_so(
    store: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_connection, "SESSION", postgres_connection.SESSION.replace("'15s'", "'50ms'"))
    with closing(open_store(postgres_url)) as other:
        async with queue_held(store):
            with pytest.raises(Unavailable, match=r"^STORE_BUSY"):
                await other.write(add("late"))
        await other.write(add("in time"))
    assert await store.read(texts) == ["in time"]


@pytest.mark.long
async def test_a_full_disk_of_the_server_is_told_and_over_when_there_is_space(
    new_postgres_server: NewServer,
) -> None:
    server = new_postgres_server()
    with small_disk(server.home / "small", megabytes=60) as place, server.connect() as connection:
        shutil.chown(place, server.data.owner(), server.data.group())
        connection.execute(f"CREATE TABLESPACE small LOCATION '{place}'")
        connection.execute("CREATE DATABASE small TABLESPACE small")
        with closing(open_store(server.url("small"))) as store:
            await store.write(lambda tx: tx.run(MAKE))
            fill(place, but=65_536)
            outcome = await asyncio.gather(
                *(store.write(add(f"{n} {random.randbytes(100_000).hex()}")) for n in range(3)), return_exceptions=True
            )
            assert {getattr(one, "code", None) for one in outcome} == {"STORE_FULL"}
            full = store.stats().full
            assert full is not None
            assert full[1] is None
            assert await store.read(count) == 0
            (place / "filler").unlink()
            await store.write(add("kept"))
            assert await store.read(texts) == await added(store) == ["kept"]
            full = store.stats().full
            assert full is not None
            assert full[1] is not None


# What is as on SQLite.


async def test_a_process_that_stands_still_in_a_transaction_loses_it_before_others_are_refused(
    store: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert postgres_connection.IDLE_SECONDS < postgres_connection.LOCK_SECONDS
    soon = postgres_connection.SESSION.replace(f"'{postgres_connection.IDLE_SECONDS}s'", "'1s'")
    monkeypatch.setattr(postgres_connection, "SESSION", soon)
    silent = postgres_connection.Connector(postgres_url).connect()
    silent.execute(f"BEGIN; {postgres_connection.TAKE_LOCK}")
    await store.write(add("meanwhile"))
    assert await store.read(texts) == ["meanwhile"]
    silent.close()


async def test_a_change_that_swallows_the_error_of_a_statement_fails_alone(store: Store) -> None:
    import psycopg

    def swallow(tx: Tx) -> None:
        add("lost")(tx)
        with suppress(psycopg.Error):
            tx.run(WRONG, text="a")

    async with queue_held(store):
        tasks = await queued(store.write(add("a")), store.write(swallow), store.write(add("b")))
    outcome = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(one, psycopg.Error) for one in outcome] == [False, True, False]
    assert await store.read(texts) == await added(store) == ["a", "b"]


async def test_a_text_that_postgresql_cannot_keep_is_refused(store: Store) -> None:
    for text in ("a\0b", "\ud800"):
        with pytest.raises((BadInput, UnicodeEncodeError), match=r"NUL|surrogates"):
            await store.write(add(text))
    assert await store.read(count) == 0


async def test_numbers_and_truth_are_what_they_are_on_sqlite(store: Store) -> None:
    values = Query(
        "values",
        "SELECT SUM(n) AS sum, AVG(n) AS avg, COUNT(*) AS count, SUM(n) = 6 AS is_six, SUM(n / 2.5) AS parts,"
        " CAST(:x AS DOUBLE PRECISION) AS x, MAX(n) FILTER (WHERE n > 5) AS none FROM notes",
    )
    for n in (1, 2, 3):
        await store.write(add(f"{n}", n))
    row = await store.read(lambda tx: tx.one(values, x=2.5))
    assert row is not None
    assert dict(row) == {"sum": 6, "avg": 2.0, "count": 3, "is_six": 1, "parts": 2.4, "x": 2.5, "none": None}
    assert [type(value) for value in row.values()] == [int, float, int, int, float, float, type(None)]


async def test_the_feed_gets_what_other_processes_commit_although_its_connection_is_lost(
    store: Store, postgres_url: str, postgres_server: PostgresServer
) -> None:
    feed = Feed(store, 1_000)
    running = asyncio.create_task(feed.run())
    listening = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN workbench'"
    with closing(open_store(postgres_url)) as other, postgres_server.connect() as connection:
        async with feed.subscribe("note.*") as news:
            for number in range(3):
                connection.execute(listening)
                await other.write(add(f"note {number}"))
                assert (await anext(news)).subject == f"note:note {number}"
    running.cancel()


def test_the_servers_clock_is_followed_and_never_goes_backwards() -> None:
    here = 0
    clock = postgres_connection.ServerClock(lambda: here)
    clock.set(1_000_000)
    here = 500
    assert clock() == 1_000_500
    clock.set(2_000_000)
    assert clock() == 2_000_000
    here = 1_500
    clock.set(1_999_000)  # set back by 2 ms
    assert clock() == 2_000_500
    here = 10_000
    clock.set(2_007_500)
    assert clock() == 2_007_500
