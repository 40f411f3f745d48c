"""PostgreSQL servers of the tests' own, and databases on them.

`postgres_server` is started once a session; `new_database` makes an empty database on it, which is dropped afterwards.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest

SUPERUSER = "tester"
"""Everybody who reaches the socket may be this user; any other one needs a password."""
_ICU_SINCE = 15
_HBA = (
    f"local all,replication {SUPERUSER} trust\nlocal all all scram-sha-256\nhost all all 127.0.0.1/32 scram-sha-256\n"
)


class PostgresServer:
    """A server that listens on a socket in a directory of its own; it ends with the tests.

    Args:
        options: its settings, such as ``max_connections=20``.
        entering: the prefix of a command that runs it elsewhere, such as on the network of some hosts.
        within: the prefix of a command, as the user of the server.
        trusts: addresses where everybody may be the superuser.
        standby_of: the running server that this one follows.
    """

    def __init__(
        self,
        binaries: Path,
        *options: str,
        entering: Sequence[str] = (),
        within: Sequence[str] = (),
        trusts: str = "",
        standby_of: PostgresServer | None = None,
    ) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="wb-pg-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
        self._binaries = binaries
        self._user = [*entering, *_as_ordinary_user(self.home), *within]
        self._options = ("listen_addresses=", f"unix_socket_directories={self.home}", "log_min_messages=log", *options)
        self._process: subprocess.Popen[str] | None = None
        self._administrator: Any = None
        self._numbers = count(1)
        if standby_of is None:
            self._create(trusts)
        else:
            copying = ["-D", str(self.data), "--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
            self._run("pg_basebackup", "-d", standby_of.url(), *copying)

    def _create(self, trusts: str) -> None:
        making = ["-U", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        if (
            int(self._binaries.parent.name) >= _ICU_SINCE
        ):  # text then sorts and folds as most databases do, not as C does
            making += ["--locale-provider=icu", "--icu-locale=en-US"]
        self._run("initdb", "-D", str(self.data), *making)
        (self.data / "pg_hba.conf").write_text(_HBA + (f"host all {SUPERUSER} {trusts} trust\n" if trusts else ""))

    @property
    def data(self) -> Path:
        """The directory of its files."""
        return self.home / "data"

    @property
    def socket(self) -> Path:
        """The socket it listens on."""
        return self.home / ".s.PGSQL.5432"

    def url(self, database: str = "postgres", user: str = SUPERUSER, password: str = "", **parameters: str) -> str:
        """A URL of a database, as libpq takes it."""
        secret = f":{quote(password)}" if password else ""
        rest = "".join(f"&{name}={quote(value)}" for name, value in parameters.items())
        return f"postgresql://{user}{secret}@/{database}?host={quote(str(self.home))}{rest}"

    def connect(self, database: str = "postgres") -> Any:
        """A connection on which each statement commits."""
        import psycopg

        return psycopg.connect(self.url(database), autocommit=True)

    @contextmanager
    def new_database(self, template: str = "template1") -> Iterator[str]:
        """The name of a new database, dropped at the end with everybody's connections to it."""
        name = f"wb_{next(self._numbers)}"
        # To write the copy to the log takes four times as long.
        self._administer(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        yield name
        if self._process is not None:
            self._administer(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def new_role(self, password: str) -> Iterator[str]:
        """The name of a new role with a password, dropped at the end: by then it must own nothing."""
        name = f"user_{next(self._numbers)}"
        self._administer(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
        try:
            yield name
        finally:
            self._administer(f"DROP ROLE {name}")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        serving = [*self._user, str(self._binaries / "postgres"), "-D", str(self.data)]
        argv = [*serving, *(f"--{option}" for option in self._options)]
        self._process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, cwd=self.home)
        assert self._process.stderr is not None
        lines: list[str] = []
        with self._process.stderr as log:  # later it logs no further: what it then writes is lost, and does not end it
            for line in log:
                lines.append(line)
                if "ready to accept" in line:  # of a standby: read-only connections
                    return
        pytest.fail("PostgreSQL did not start:\n" + "".join(lines))

    def kill(self) -> None:
        """End it and its processes as a failing machine would."""
        with self.suspended() as processes:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self._ended()
            deadline = time.monotonic() + 30
            while not all(map(_has_ended, processes)):  # until then its memory is in use, and no other can start
                assert time.monotonic() < deadline, processes
                time.sleep(0.005)

    @contextmanager
    def suspended(self) -> Iterator[list[psutil.Process]]:
        """Have it and its processes stand still."""
        assert self._process is not None
        parent = psutil.Process(self._process.pid)
        parent.suspend()  # it begins no other
        processes = [*parent.children(recursive=True), parent]
        try:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.suspend()
            yield processes
        finally:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it in order: everybody's connections are closed first."""
        if self._process is not None:
            self._process.send_signal(how)
            self._ended()

    def promote(self) -> None:
        """Make a standby the primary."""
        self._run("pg_ctl", "promote", "-w", "-D", str(self.data))

    def remove(self) -> None:
        """End it, and remove its files."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.home)

    def _administer(self, statement: str) -> None:
        if self._administrator is None:
            self._administrator = self.connect()
        self._administrator.execute(statement)

    def _ended(self) -> None:
        assert self._process is not None
        if self._administrator is not None:
            self._administrator.close()
            self._administrator = None
        self._process.wait(timeout=30)
        self._process = None

    def _run(self, program: str, *arguments: str) -> None:
        argv = [*self._user, str(self._binaries / program), *arguments]
        subprocess.run(argv, check=True, capture_output=True, cwd=self.home, timeout=50)


def _has_ended(process: psutil.Process) -> bool:
    """Whether a process holds nothing any more; whose parent was killed may stay a zombie for a while."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@contextmanager
def directory_within_reach() -> Iterator[Path]:
    """A directory that PostgreSQL's user may read, unlike those of pytest; removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="wb-pg-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")) as name:
        place = Path(name)
        place.chmod(0o755)
        yield place


def _as_ordinary_user(home: Path) -> list[str]:
    """The prefix of a command that ends with the tests and does not run as root, whom PostgreSQL refuses."""
    dying = ["setpriv", "--pdeathsig=QUIT"]
    if os.geteuid() != 0:
        return dying
    shutil.chown(home, "postgres", "postgres")
    return [*dying, "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def installed() -> Path | None:
    """Where the programs of the newest installed PostgreSQL are."""
    paths = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return paths[-1] if paths else None


@contextmanager
def running_server(binaries: Path, *options: str, **where: Any) -> Iterator[PostgresServer]:
    """A server of one's own; see `PostgresServer`."""
    server = PostgresServer(binaries, *options, **where)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def postgres_binaries() -> Path:
    """The programs of the newest installed PostgreSQL."""
    pytest.importorskip("psycopg")
    found = installed()
    if found is None:
        pytest.skip("there is no PostgreSQL in /usr/lib/postgresql")
    return found


@pytest.fixture(scope="session")
def postgres_server(postgres_binaries: Path) -> Iterator[PostgresServer]:
    """A server for all tests of the session: do not end it."""
    hasty = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "autovacuum=off")
    with running_server(postgres_binaries, *hasty, "max_connections=200") as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> Iterator[str]:
    """The name of a database that is a store without content. To copy it is quicker than its migrations."""
    from workbench.store.opening import open_store

    with postgres_server.new_database() as name:
        open_store(postgres_server.url(name)).close()
        yield name


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    """The URL of a database that is a store without content, for one test."""
    with postgres_server.new_database(postgres_template) as name:
        yield postgres_server.url(name)


NewServer = Callable[..., PostgresServer]


@pytest.fixture
def new_postgres_server(postgres_binaries: Path) -> Iterator[NewServer]:
    """`new_postgres_server("max_connections=10")`: a running server of the test's own, which it may end."""
    with ExitStack() as stack:
        yield lambda *options: stack.enter_context(running_server(postgres_binaries, "fsync=off", *options))
