"""`workbench db`: a PostgreSQL server for trying out, and the way of a project to PostgreSQL and back."""

from __future__ import annotations

import json
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.cli.conftest import Type, code, data
from tests.postgres import PostgresServer
from workbench.state.settings import Settings
from workbench.store import own_server
from workbench.store.own_server import passfile

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120)]


@pytest.fixture
def place(run: Type) -> Iterator[Path]:
    """A data directory that PostgreSQL's user can reach, whoever runs the tests; its server ends with the test."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        os.chmod(directory, 0o755)
        yield Path(directory) / "data"
        run("db", "down", "--data", f"{directory}/data")


def test_a_server_for_trying_out_starts_answers_its_person_alone_and_stops(run: Type, place: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    server = data(run("--json", "db", "up", "--data", str(place)))
    address, port, secret = server["url"], server["port"], passfile(place)
    assert (server["is_new"], stat.S_IMODE(secret.stat().st_mode)) == (True, 0o600)
    with psycopg.connect(address) as db:
        assert (
            db.execute("SELECT version(), datcollate FROM pg_database WHERE datname = 'workbench'").fetchone()[1] == "C"
        )
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(address.partition("?")[0], passfile=os.devnull)
    told = run("db", "up", "--data", str(place))
    assert "runs already" in told.out
    assert address in told.out
    assert secret.read_text().strip().rpartition(":")[2] not in told.out
    postmaster = psutil.Process(server["pid"])
    processes = [postmaster, *postmaster.children()]
    postmaster.kill()
    psutil.wait_procs(processes, timeout=20)
    again = data(run("--json", "db", "up", "--data", str(place)))
    assert (again["is_new"], again["url"], again["port"]) == (True, address, port)
    assert data(run("--json", "db", "down", "--data", str(place)))["stopped"]
    assert "No server was running" in run("db", "down", "--data", str(place)).out


def test_a_lost_password_is_replaced(run: Type, place: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    run("db", "up", "--data", str(place))
    passfile(place).unlink()
    assert code(run("db", "up", "--data", str(place))) == "POSTGRES_NO_PASSWORD"
    run("db", "down", "--data", str(place))
    psycopg.connect(data(run("--json", "db", "up", "--data", str(place)))["url"]).close()


def test_what_stands_in_the_way_of_a_server_is_said(run: Type, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    up = ("db", "up", "--data", str(place))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert code(run(*up, "--port", str(taken.getsockname()[1]))) == "PORT_TAKEN"
    place.mkdir()
    (place / "PG_VERSION").write_text("9\n")
    refused = run(*up)
    assert code(refused) == "POSTGRES_OTHER_VERSION"
    assert "was made by PostgreSQL 9" in refused.err
    (place / "PG_VERSION").rename(place / "notes.txt")
    assert code(run(*up)) == "NOT_A_DATABASE"
    (place / "notes.txt").unlink()
    monkeypatch.setattr(own_server, "PLACES", ())
    monkeypatch.setenv("PATH", "/nonexistent")
    refused = run(*up)
    assert code(refused) == "POSTGRES_MISSING"
    assert "apt install postgresql" in refused.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs as another user")
def test_a_directory_that_roots_server_cannot_enter_is_refused(run: Type, place: Path) -> None:
    os.chmod(place.parent, 0o700)
    refused = run("db", "up", "--data", str(place))
    assert code(refused) == "POSTGRES_OUT_OF_REACH"
    assert f"cannot enter {place.parent}" in refused.err


def facts(run: Type) -> dict[str, str]:
    """What `db status` says."""
    return dict(data(run("--json", "db", "status")))


def of_doctor(run: Type) -> tuple[str, str]:
    """The state of the store and the sentence about it."""
    (row,) = (row for row in json.loads(run("--json", "doctor").out) if row["what"] == "store")
    return row["state"], row["says"]


def test_a_project_goes_to_postgresql_and_comes_back(
    run: Type, penguins: Path, migrated: Settings, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert facts(run)["version"].startswith("SQLite")
    with postgres_server.new_database() as name:
        address = postgres_server.url(name)
        assert "set WORKBENCH_DATABASE_URL to its address" in run("db", "copy", "--to", address).out
        assert code(run("tasks")) == "DATABASE_NOT_SET"
        assert of_doctor(run)[0] == "missing"
        monkeypatch.setenv("WORKBENCH_DATABASE_URL", address)
        assert facts(run)["version"].startswith("PostgreSQL")
        assert {row["is_equal"] for row in data(run("--json", "db", "copy", "--check", "--to"))} == {True}
        assert of_doctor(run)[0] == "ok"
        assert [task["id"] for task in data(run("--json", "tasks"))] == [1, 2]
        run("cancel", "1")
        ran = run("--json", "db", "copy", "--check", "--to")
        assert ran.status == 1
        assert "events" in [row["table"] for row in json.loads(ran.out) if not row["is_equal"]]
        backup = data(run("--json", "backup"))["backup"]
        assert code(run("restore", backup)) == "STORE_ON_POSTGRESQL"
        assert code(run("db", "copy", "--from")) == "NOT_CONFIRMED"
        run("db", "copy", "--from", "--yes")
        same = data(run("--json", "db", "copy", "--check", "--to", "--file", backup))
        assert all(row["is_equal"] for row in same)
        monkeypatch.delenv("WORKBENCH_DATABASE_URL")
    assert {task["status"] for task in data(run("--json", "tasks", "--status", "cancelled"))} == {"cancelled"}


def test_an_address_is_refused_without_its_password(run: Type) -> None:
    for address in ("postgresql://ada:hunter/2@127.0.0.1/x", "host=127.0.0.1 password=hunter2 connect_timeout"):
        refused = run("db", "copy", "--to", address)
        assert code(refused) == "BAD_DATABASE_URL"
        assert "hunter" not in refused.err
    assert code(run("db", "copy", "--to")) == "BAD_DATABASE_URL"


def test_an_address_on_the_command_line_has_no_password(run: Type) -> None:
    for address in ("postgresql://ada:hunter2@127.0.0.1/x", "host=127.0.0.1 password=hunter2"):
        refused = run("db", "copy", "--to", address)
        assert code(refused) == "BAD_DATABASE_URL"
        assert "~/.pgpass" in refused.err
        assert "hunter2" not in refused.err
