"""A PostgreSQL server of the person's own, from the programs that are installed here, for trying out.

It listens at the loopback address only and asks for a password. That is in a file of the person's own, which the
address names: the address can be shown, and works for nobody else. Root's server runs as another user, because
PostgreSQL refuses root.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import secrets
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from workbench.errors import BadInput, Conflict, Refused, Unavailable
from workbench.state import user_files
from workbench.state.database_url import OLDEST_SERVER
from workbench.system import atomic_file, file_lock
from workbench.system.users import user_name

HOST = "127.0.0.1"
NAME = "workbench"
"""The role, and its database."""
START_SECONDS = 60
STOP_SECONDS = 60.0
MAKE_SECONDS = 120.0
LOCK_SECONDS = MAKE_SECONDS + START_SECONDS
ENDING_SECONDS = 20.0
"""How long the processes of a killed server may take to end, which the next one waits for."""
POLL_SECONDS = 0.05
SYSTEM_DIRECTORY = Path("/var/lib/workbench")
"""Where root's servers have their data, because the user they run as may not enter a state directory."""
OWN_SERVER = "postgres"
"""Where other users' servers have their data, in the state directory."""
USERS = ("postgres", "nobody")
"""As whom root runs a server: the first that the system knows."""
PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)
INSTALL = "`apt install postgresql`, `dnf install postgresql-server` or `brew install postgresql`"
_PASSED_ON = ("PATH", "TZ", "LD_LIBRARY_PATH")
"""The variables of the person's environment that the server gets: it needs no secrets."""
_SOCKET_PATH = re.compile(r"[\w./-]{1,85}")
"""Directories whose sockets every system can name, and the server's command line, too."""
_SEVERE = re.compile(r"\b(?:FATAL|PANIC|ERROR|error):\s*(.*)")
_OF_A_KILLED_SERVER = re.compile(r"is still in use|lock file \"[^\"]*\" already exists")
"""What a server says while processes of the one before it still end."""


@dataclass(frozen=True)
class Programs:
    """The programs of an installed server: their directory, and their version."""

    directory: Path
    major: int


@dataclass(frozen=True)
class Running:
    """A server that runs.

    Args:
        url: its address, which names the file of its password.
        version: of the server's major, as a text.
        is_new: it was started now.
    """

    url: str
    pid: int
    port: int
    version: str
    data: Path
    log: Path
    is_new: bool


def default_data(home: Path) -> Path:
    """Where a project's own server keeps its data.

    Args:
        home: the state directory of the project.
    """
    if os.geteuid() != 0:
        return home / OWN_SERVER
    return SYSTEM_DIRECTORY / f"{home.parent.name}-{_digest(home)[:8]}"


def start(data: Path, port: int | None = None) -> Running:
    """Start the server of a data directory, which is made if it is missing; one that runs stays as it is. Blocks.

    Args:
        port: None: the one it had; 0: any that is free.

    Raises:
        Unavailable: ``POSTGRES_MISSING``, ``POSTGRES_NOT_STARTED``, ``CONFIG_UNWRITABLE``.
        Conflict: ``PORT_TAKEN``, ``POSTGRES_OTHER_VERSION``, ``POSTGRES_NO_PASSWORD``.
        BadInput: ``NOT_A_DATABASE``. Refused: ``POSTGRES_OUT_OF_REACH``.
    """
    data = data.resolve()
    try:
        data.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(data):
            if (running := find(data)) is not None:
                return running
            _require_reach(data)
            programs = _programs_for(data)
            port = _choose_port(port if port is not None else _port(data))
            _make(programs, data, port)
            _launch(programs, data, port)
            started = find(data)
    except OSError as error:
        raise Unavailable("POSTGRES_NOT_STARTED", f"{data} cannot be used: {error.strerror}.") from error
    if started is None:
        raise _not_started(data)
    return Running(**vars(started) | {"is_new": True})


def stop(data: Path) -> bool:
    """Stop the server of a data directory, and wait for its end; whether one ran. Its data stay. Blocks.

    Raises:
        Unavailable: ``POSTGRES_STILL_STOPPING``.
    """
    process = _find_process(data.resolve())
    if process is None:
        return False
    with suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGINT)  # a fast shutdown: connections are closed, and everything is written
    end = time.monotonic() + STOP_SECONDS
    while _find_process(data.resolve()) is not None:
        if time.monotonic() > end:
            raise Unavailable(
                "POSTGRES_STILL_STOPPING",
                f"The server (process {process.pid}) still runs after {STOP_SECONDS:.0f} s. {_log(data)} may say why.",
            )
        time.sleep(POLL_SECONDS)
    return True


def find(data: Path) -> Running | None:
    """The server of a data directory, if it runs.

    Raises:
        Conflict: ``POSTGRES_NO_PASSWORD``: the file of its password is gone.
    """
    data = data.resolve()
    process = _find_process(data)
    if process is None:
        return None
    if (port := _port(data)) is None:
        raise Conflict(
            "POSTGRES_NO_PASSWORD",
            f"The server of {data} runs, but the file of its password, {passfile(data)}, is gone. `workbench db down` "
            "and `workbench db up` set a new one.",
        )
    address = f"postgresql://{NAME}@{HOST}:{port}/{NAME}?passfile={quote(str(passfile(data)))}"
    return Running(address, process.pid, port, str(_major_of(data)), data, _log(data), False)


def passfile(data: Path) -> Path:
    """The file that has a server's port and password, as libpq reads it."""
    return user_files.directory() / "postgres" / f"{_digest(data)[:32]}.pgpass"


# Programs and users.


def _programs_for(data: Path) -> Programs:
    """The programs that can run a data directory; for one that is yet to be made, the newest."""
    installed = _installed()
    major = _major_of(data)
    if major is None and data.is_dir() and any(data.iterdir()):
        raise BadInput("NOT_A_DATABASE", f"{data} has other files. Name an empty or a new directory with --data.")
    usable = [programs for programs in installed if programs.major >= OLDEST_SERVER]
    if not usable:
        found = f"PostgreSQL {installed[-1].major} is too old" if installed else "PostgreSQL's server is not installed"
        raise Unavailable(
            "POSTGRES_MISSING",
            f"{found}: Workbench needs version {OLDEST_SERVER} or newer. {INSTALL} installs it. Or use a server that "
            "runs elsewhere: set WORKBENCH_DATABASE_URL to its address.",
        )
    if major is None:
        return usable[-1]
    if same := [programs for programs in usable if programs.major == major]:
        return same[-1]
    majors = ", ".join(str(programs.major) for programs in usable)
    raise Conflict(
        "POSTGRES_OTHER_VERSION",
        f"{data} was made by PostgreSQL {major}, and the installed version is {majors}. Install version {major}, or "
        "name another directory with --data.",
    )


def _installed() -> list[Programs]:
    """The installed servers, by version."""
    in_path = shutil.which("postgres")
    directories = [Path(in_path).resolve().parent] if in_path else []
    for pattern in PLACES:
        directories += Path("/").glob(pattern.removeprefix("/"))
    programs = {}
    for directory in directories:
        if all((directory / name).is_file() for name in ("initdb", "pg_ctl", "postgres")):
            told = subprocess.run([directory / "postgres", "--version"], capture_output=True, text=True, timeout=10)
            if match := re.search(r"PostgreSQL\) (\d+)", told.stdout):
                programs[directory.resolve()] = Programs(directory, int(match[1]))
    return sorted(programs.values(), key=lambda found: found.major)


def _server_user() -> pwd.struct_passwd | None:
    """As whom the server runs; None: as the person."""
    if os.geteuid() != 0:
        return None
    for name in USERS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise Unavailable(
        "POSTGRES_NOT_STARTED", "PostgreSQL refuses root, and there is no user postgres or nobody. Run it as a user."
    )


def _require_reach(data: Path) -> None:
    """Refuse a directory that the user of root's server cannot enter."""
    user = _server_user()
    for parent in data.parents if user else ():
        status = parent.stat()
        if user and status.st_uid != user.pw_uid and not status.st_mode & stat.S_IXOTH:
            raise Refused(
                "POSTGRES_OUT_OF_REACH",
                f"Root's server runs as {user_name(user.pw_uid)}, who cannot enter {parent}. Name another directory "
                f"with --data, such as one in {SYSTEM_DIRECTORY}.",
            )


def _run(command: Sequence[str], seconds: float, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program of the server as the user that the server runs as."""
    user = _server_user()
    as_user: dict[str, Any] = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
    environment: Mapping[str, str] = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        cwd="/",
        env={**environment, "LC_ALL": "C"},
        **as_user,
    )


def _give(path: Path) -> None:
    """Give a new entry to the user that the server runs as."""
    if user := _server_user():
        os.chown(path, user.pw_uid, user.pw_gid)


# The data directory.


def _make(programs: Programs, data: Path, port: int) -> None:
    """Make a data directory unless there is one, completely or not at all; note the port and the password."""
    is_there = _major_of(data) is not None
    password = _password(data) if is_there else None
    if password is None:
        password = secrets.token_urlsafe(24)
        if is_there:
            _alone(programs, data, f"ALTER ROLE {NAME} PASSWORD '{password}';\n")
        else:
            _initialise(programs, data, password)
    try:
        atomic_file.replace(passfile(data), f"{HOST}:{port}:*:{NAME}:{password}\n", mode=0o600)
    except Unavailable as error:
        raise Unavailable("CONFIG_UNWRITABLE", f"The server's password cannot be kept: {error.message}") from error


def _initialise(programs: Programs, data: Path, password: str) -> None:
    unfinished = data.with_name(f"{data.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    _give(unfinished)
    with _password_file(data, password) as file:
        arguments = ["--username", NAME, "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C"]
        command = [str(programs.directory / "initdb"), "--pgdata", str(unfinished), *arguments, "--pwfile", str(file)]
        made = _run(command, MAKE_SECONDS)
    if made.returncode:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise _not_started(data, made.stderr)
    _alone(programs, unfinished, f"CREATE DATABASE {NAME};\n")
    unfinished.rename(data)


@contextmanager
def _password_file(data: Path, password: str) -> Iterator[Path]:
    path = data.with_name(f"{data.name}.password")
    path.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(password)
        _give(path)
        yield path
    finally:
        path.unlink(missing_ok=True)


def _alone(programs: Programs, data: Path, statement: str) -> None:
    """Run a statement in a data directory without a server."""
    command = [str(programs.directory / "postgres"), "--single", "-D", str(data), "postgres"]
    done = _run(command, MAKE_SECONDS, statement)
    if done.returncode or _SEVERE.search(done.stderr):
        raise _not_started(data, done.stderr)


def _launch(programs: Programs, data: Path, port: int) -> None:
    """Start the server of a data directory; wait until it answers."""
    log = _log(data)
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)):
        _give(log)
    sockets = str(data) if _SOCKET_PATH.fullmatch(str(data)) else ""
    options = {"listen_addresses": HOST, "port": str(port), "unix_socket_directories": sockets}
    told = " ".join(f"-c {name}={shlex.quote(value)}" for name, value in options.items())
    command = [str(programs.directory / "pg_ctl"), "start", "--silent", "--wait", "--timeout", str(START_SECONDS)]
    end = time.monotonic() + ENDING_SECONDS
    _forget_ended(data)
    while True:
        before = log.stat().st_size
        begun = _run([*command, "--pgdata", str(data), "--log", str(log), "--options", told], START_SECONDS + 10)
        if begun.returncode == 0:
            return
        said = _log_since(log, before)
        if not _OF_A_KILLED_SERVER.search(said) or time.monotonic() > end:
            raise _not_started(data, said or begun.stderr)
        time.sleep(POLL_SECONDS)


def _forget_ended(data: Path) -> None:
    """Remove the notes of a killed server whose parent does not wait for it: its number stays in use meanwhile."""
    with suppress(OSError, ValueError, psutil.Error):
        if psutil.Process(_pid(data)).status() == psutil.STATUS_ZOMBIE:
            for note in (*data.glob(".s.PGSQL.*.lock"), data / "postmaster.pid"):
                note.unlink()


def _pid(data: Path) -> int:
    return int((data / "postmaster.pid").read_text("utf-8").partition("\n")[0])


def _not_started(data: Path, said: str = "") -> Unavailable:
    reasons = _SEVERE.findall(said) or said.strip().splitlines() or ["it says nothing"]
    why = reasons[-1].rstrip(".")
    return Unavailable("POSTGRES_NOT_STARTED", f"PostgreSQL did not start: {why}. Its log is {_log(data)}.")


def _log_since(log: Path, position: int) -> str:
    with log.open("rb") as file:
        file.seek(position)
        return file.read(100_000).decode("utf-8", "replace")


def _find_process(data: Path) -> psutil.Process | None:
    """The process of the server of a data directory."""
    try:
        process = psutil.Process(_pid(data))
        runs = process.status() != psutil.STATUS_ZOMBIE and str(data) in process.cmdline()
    except (OSError, ValueError, psutil.Error):
        return None
    return process if runs else None


def _major_of(data: Path) -> int | None:
    """The version of PostgreSQL that made a data directory; None if it is none."""
    try:
        return int((data / "PG_VERSION").read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _fields(data: Path) -> list[str] | None:
    try:
        fields = atomic_file.read(passfile(data), private=True).strip().split(":")
    except (OSError, ValueError):
        return None
    return fields if len(fields) == 5 and fields[1].isdecimal() else None


def _port(data: Path) -> int | None:
    fields = _fields(data)
    return int(fields[1]) if fields else None


def _password(data: Path) -> str | None:
    fields = _fields(data)
    return fields[4] if fields else None


def _choose_port(port: int | None) -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port or 0))
        except OSError as error:
            raise Conflict(
                "PORT_TAKEN",
                f"Port {port} is taken by another program. `workbench db up --port 0` takes one that is free; the "
                "address is another then.",
            ) from error
        return int(probe.getsockname()[1])


@contextmanager
def _only_one(data: Path) -> Iterator[None]:
    """Have one process at a time start a server in a data directory."""
    with file_lock.held(data.with_name(f"{data.name}.lock"), LOCK_SECONDS) as is_held:
        if not is_held:
            raise _not_started(data, "another process starts it")
        yield


def _log(data: Path) -> Path:
    return data.with_name(f"{data.name}.log")


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
