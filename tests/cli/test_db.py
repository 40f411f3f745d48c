"""`workbench db`: a PostgreSQL server for trying out."""

from __future__ import annotations

import os
import signal
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Type, code, data
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
    os.kill(server["pid"], signal.SIGKILL)
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
