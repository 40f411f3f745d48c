"""A store is copied from SQLite to PostgreSQL and back, whole or not at all."""

from __future__ import annotations

import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.given import refused
from tests.postgres import PostgresServer
from workbench.store import copying
from workbench.store.contents import Rows, SqliteContents
from workbench.store.opening import open_store
from workbench.store.postgres_connection import Connector

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120)]

EXTREMES = (-0.0, 0.1 + 0.2, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"))
CUT_OFF = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'workbench'"
SERVER = (
    "INSERT INTO servers (nonce, machine, process, url, started_at, seen_at) "
    "VALUES ('n', 'penguins-lab', 'p', 'http://lab:1', 1, 1)"
)
TEXTS = ("", "a\tb\\n\n", "é 𝕏 \u200b", "\\N", "x" * 100_000)


@pytest.fixture
def filled(tmp_path: Path, empty_store: Path) -> Path:
    """A store with values that are hard to copy, rows that refer to each other in a circle, and ids that are gone."""
    path = tmp_path / "coordination.db"
    path.write_bytes(empty_store.read_bytes())
    with closing(sqlite3.connect(path)) as db:
        db.executemany(
            "INSERT INTO events (at, kind, actor, subject, data) VALUES (?, 'task.told', 'person', ?, '{}')",
            zip((0, 1, -1, 2**63 - 1, -(2**63)), TEXTS, strict=True),
        )
        db.execute("DELETE FROM events WHERE id = 5")
        db.executemany(
            "INSERT INTO contexts (id, title, content, metadata, created_at, updated_at) VALUES (?, ?, ?, '{}', 1, 1)",
            [("one", "Penguins", "of Biscoe"), ("two", "Seals", "")],
        )
        db.execute(
            "INSERT INTO rolled_up_events (last_id, first_id, first_at, last_at, events, sha256, parquet) "
            "VALUES (1, 1, 0, 0, 1, 'h', ?)",
            (bytes(range(256)),),
        )
        db.executemany("INSERT INTO spent (scope, usd) VALUES (?, ?)", [(repr(usd), usd) for usd in EXTREMES])
        db.execute(
            "INSERT INTO agents (id, assigned_agent_id, name, registration_status, token_hash, role, tool, "
            "capabilities, assigned_worktree, registered_at, last_heartbeat) "
            "VALUES ('a', 'a-1', 'a', 'active', 'h', 'worker', 'write', '[]', 'w', 1, 1)"
        )
        db.execute(
            "INSERT INTO worktrees (name, branch_name, base_commit, integration_target, status, created_by, "
            "created_at, creator) VALUES ('w', 'w', 'c', 'main', 'active', 'a-1', 1, 'a')"
        )
        db.commit()
    return path


def test_a_connection_that_ends_meanwhile_does_not_stop_a_comparison(
    filled: Path, postgres_server: PostgresServer
) -> None:
    with postgres_server.new_database() as name:
        address = postgres_server.url(name)
        copying.copy_to_postgres(filled, address)
        ends = threading.Timer(0.3, Connector(address).connect().close)
        ends.start()
        assert all(row.is_equal for row in copying.compare_stores(filled, address))
        ends.join()


def test_a_store_is_equal_after_the_way_to_postgresql_and_back(
    filled: Path, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    with postgres_server.new_database() as name:
        address = postgres_server.url(name)
        there = copying.copy_to_postgres(filled, address)
        with postgres_server.connect(name) as db:  # which SQLite keeps as 0.0
            db.execute("UPDATE spent SET usd = CAST('-0' AS DOUBLE PRECISION) WHERE scope = '-0.0'")
        back, aside = copying.copy_from_postgres(address, tmp_path / "back.db")
        assert [(row.table, row.rows, row.hash) for row in back] == [(row.table, row.rows, row.hash) for row in there]
        assert all(row.is_equal for row in copying.compare_stores(filled, address))
        assert aside is None
        assert stat.S_IMODE((tmp_path / "back.db").stat().st_mode) == 0o600
        with postgres_server.connect(name) as db:
            db.execute("UPDATE spent SET usd = 0.3 WHERE scope = '0.30000000000000004'")
        differing = [row.table for row in copying.compare_stores(filled, address) if not row.is_equal]
        assert differing == ["spent"]
    with closing(sqlite3.connect(tmp_path / "back.db")) as db:
        assert db.execute("SELECT title FROM contexts_text WHERE contexts_text MATCH 'biscoe'").fetchall() == [
            ("Penguins",)
        ]


@pytest.mark.anyio
async def test_ids_go_on_after_those_that_were_given_even_if_their_rows_are_gone(
    filled: Path, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    with postgres_server.new_database() as name:
        copying.copy_to_postgres(filled, postgres_server.url(name))
        store = open_store(postgres_server.url(name))
        await store.write(lambda tx: tx.emit("task.told", "task:1"))
        store.close()
        copying.copy_from_postgres(postgres_server.url(name), tmp_path / "back.db")
    store = open_store(tmp_path / "back.db")
    await store.write(lambda tx: tx.emit("task.told", "task:1"))
    store.close()
    with closing(sqlite3.connect(tmp_path / "back.db")) as db:
        assert [id_ for (id_,) in db.execute("SELECT id FROM events ORDER BY id")] == [1, 2, 3, 4, 6, 7]


def test_a_copy_that_is_cut_off_leaves_nothing_and_is_made_again(
    filled: Path, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server.new_database() as name:
        address = postgres_server.url(name)

        class CutOff(SqliteContents):
            def rows(self, table: str, columns: Any) -> Iterator[Rows]:
                if table == "spent":
                    with postgres_server.connect(name) as db:
                        db.execute(CUT_OFF)
                return super().rows(table, columns)

        with monkeypatch.context() as patch:
            patch.setattr(copying, "SqliteContents", CutOff)
            refused("STORE_UNAVAILABLE", copying.copy_to_postgres, filled, address)
        with postgres_server.connect(name) as db:
            assert db.execute("SELECT count(*) FROM events").fetchone() == (0,)
        assert all(row.is_equal for row in copying.copy_to_postgres(filled, address))
        assert all(row.is_equal for row in copying.copy_to_postgres(filled, address)), "nobody may have noted the first"
        with postgres_server.connect(name) as db:
            db.execute("UPDATE contexts SET title = 'Orcas' WHERE id = 'two'")
            latest = "DELETE FROM migration_history WHERE id = (SELECT MAX(id) FROM migration_history)"
            refused("COPY_NOT_EMPTY", copying.copy_to_postgres, filled, address)
            db.execute(latest)
            refused("PROJECT_OUTDATED", copying.copy_to_postgres, filled, address)
            assert db.execute(latest).rowcount == 1, "what an older Workbench has made is not migrated"


def test_a_store_that_is_open_is_not_copied(filled: Path, postgres_server: PostgresServer, tmp_path: Path) -> None:
    with postgres_server.new_database() as name:
        address = postgres_server.url(name)
        with closing(open_store(filled)):
            refused("STORE_IN_USE", copying.copy_to_postgres, filled, address)
        with closing(open_store(address)):
            error = refused("STORE_IN_USE", copying.copy_to_postgres, filled, address)
            refused("STORE_IN_USE", copying.copy_from_postgres, address, tmp_path / "back.db")
            with postgres_server.connect(name) as db:
                db.execute(SERVER)
            named = refused("STORE_IN_USE", copying.copy_from_postgres, address, tmp_path / "back.db")
        assert "of PostgreSQL, from this machine" in error.message
        assert "the server http://lab:1 on penguins-lab" in named.message
        assert not (tmp_path / "back.db").exists()


def test_what_postgresql_cannot_keep_is_named_and_nothing_is_copied(
    filled: Path, postgres_server: PostgresServer
) -> None:
    with closing(sqlite3.connect(filled)) as db:
        db.execute("UPDATE contexts SET title = 'a' || char(0) WHERE id = 'two'")
        db.commit()
    with postgres_server.new_database() as name:
        error = refused("NOT_COPYABLE", copying.copy_to_postgres, filled, postgres_server.url(name))
        assert "a row of contexts" in error.message
