"""Finds refusals by the box in a failed command's output, and names the settings that allow what was refused.

The kernel does not report refusals to a user's programs, so this reads their output. A path counts only if it is
outside the box and this process may use it itself; an ordinary lack of permission is not blamed on the box. Since a
program can print anything, the explanation says "may".
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from workbench.confinement.abilities import abilities
from workbench.confinement.box import Box
from workbench.rules.hosts import HostRefusal
from workbench.state import outside
from workbench.state.home import home
from workbench.state.root import STATE
from workbench.state.settings_file import NOT_TRUSTED

LINES = 200
LINE_LENGTH = 2_000
SHOWN = 5
ONCE_STARTED = "A changed setting counts once the server and the agent are started again."
HEADING = f"This may be a refusal by its box. {ONCE_STARTED}"

_REFUSED = re.compile(
    r"permission denied|operation not permitted|read-only file ?system|\b(?:EACCES|EPERM|EROFS)\b|PermissionError", re.I
)
_READ_ONLY = re.compile(r"read-only file ?system|\bEROFS\b", re.I)
_UNREACHED = re.compile(r"(failed|could ?n[o']t|unable) (to )?connect|connection to server", re.I)
_NOT_REACHED = re.compile(
    r"connection refused|no route to host|network is unreachable|\b(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH)\b"
    r"|connect call failed",
    re.I,
)
_UNRESOLVED = re.compile(
    r"could not resolve|temporary failure in name resolution|name or service not known|name does not resolve"
    r"|nodename nor servname|no such host|unknown host|getaddrinfo|\b(?:EAI_AGAIN|EAI_NONAME|ENOTFOUND|NXDOMAIN)\b",
    re.I,
)
_MISSING = re.compile(r"(?:^|[\s:'])(?P<name>[\w.+-]+)['’]?: (?:(?:command )?not found|there is no such command.*)\s*$")
_SPEAKER = re.compile(r"^\S+: (?:(?:line )?\d+: |(?=\S.*: ))")
"""The beginning of a message: the program, and a shell's line of its script, neither of which was refused."""
_SUBJECT = re.compile(
    r"(?:^|[\s:])(/[^:'\"‘’]*?|[^\s:'\"‘’/][^\s:'\"‘’]*): "
    r"(?:permission denied|operation not permitted|read-only file ?system)",
    re.I,
)
"""A path that stands before the refusal; an absolute one, with its blanks."""
_PLACE_IN_CODE = re.compile(r"""File "[^"]*", line \d+|\S+\.\w+:\d+(?::\d+)?(?=[:)\s]|$)""")
"""Where a program was when it failed, which is no path that it was refused."""
_UNIX = re.compile(r"\bAF_UNIX\b|\bgetattr\(socket, family\)|\b(?:listen|connect) (?:EACCES|EPERM)\b[^/]*\s[\w.-]*/")
"""Also as `multiprocessing` and Node.js make UNIX sockets."""
_PROCESSES = re.compile(r"\bpsutil\.(?:_exceptions\.)?AccessDenied\b|\buv_resident_set_memory\b")
"""What psutil and Node.js say when they may not read about their own process."""
_HARMLESS = re.compile(r"could not create cache path|PytestCacheWarning")
"""What pytest says when it does without its cache."""
_LISTENING = re.compile(r"\.bind\(|\blisten (?:EACCES|EPERM)|attempting to bind", re.I)
_CONNECTING = re.compile(r"\bconnect(?:_tcp|_ex)?\(|\bin (?:connect|create_connection)\b")
_LOCKS = re.compile(r"SemLock|/dev/shm(?!/[^/\s]+/)|shm_open|sem_open|['\"]/(?:psm_|mp-|sem\.)[\w.-]+['\"]")
"""Locks are files directly in /dev/shm; files in its directories are ordinary."""
_QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"|‘([^’]+)’")
_BETWEEN_WORDS = re.compile(r"[\s:'\",;()<>\[\]]+")
_PORT = re.compile(
    r"\bport[ =:]+(?P<named>\d{1,5})\b|'[\w.:-]+', (?P<pair>\d{1,5})\)"
    r"|(?:\b\d+\.\d+\.\d+\.\d+|\blocalhost|\]|://[\w.-]+):(?P<address>\d{1,5})\b",
    re.I,
)
_TELLING = (
    _REFUSED,
    _UNREACHED,
    _NOT_REACHED,
    _UNRESOLVED,
    _MISSING,
    _LISTENING,
    _CONNECTING,
    _LOCKS,
    _UNIX,
    _PROCESSES,
)


_LISTENS = "0A"
"""The state of a listening socket in the kernel's table."""
_ALSO_OPENED_BY = {"confinement_read": ("read", "include"), "confinement_connect": ("network", "private")}
"""Settings of the workplace that open the same."""


class Wall(StrEnum):
    """The part of a box that refuses something."""

    FILES = "rules for files"
    NETWORK = "rules for the network"
    HOSTS = "rules for hosts"
    SYSTEM_CALLS = "filter of system calls"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that a box refuses, by which of its walls, and what is to be done.

    Args:
        what: a sentence without its end.
        remedy: what opens it.
        setting: the one that opens it; None: no setting does.
    """

    what: str
    wall: Wall
    remedy: str = "no setting allows that"
    setting: str | None = None

    def __str__(self) -> str:
        return f"{self.what}, by its {self.wall}: {self.remedy}."


@dataclass
class TellingLines:
    """The lines of an output that may tell of a refusal, at most `LINES` of them."""

    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Keep a line if it may tell of a refusal."""
        start = line[:LINE_LENGTH]
        if len(self.lines) < LINES and any(pattern.search(start) for pattern in _TELLING):
            self.lines.append(start)


def explanation(lines: Iterable[str], box: Box, cwd: Path, hosts: Iterable[HostRefusal] = ()) -> str:
    """A text about the box's likely refusals, with the setting that allows each; empty without a sign of one.

    Args:
        lines: the output of a command that has failed.
        cwd: the directory it ran in.
        hosts: those that its gate refused; then its output need not tell of connections.
    """
    refused_hosts = of_hosts(hosts)
    refusals = refused_hosts + [
        refusal for refusal in found_in_output(lines, box, cwd) if not (refused_hosts and refusal.wall is Wall.NETWORK)
    ]
    if not refusals:
        return ""
    more = [f"- and {len(refusals) - SHOWN} more"] if len(refusals) > SHOWN else []
    notes = [f"- {note}" for note in (untrusted_note(refusals[:SHOWN], box),) if note]
    return "\n".join([HEADING, *(f"- {refusal}" for refusal in refusals[:SHOWN]), *more, *notes])


def of_hosts(hosts: Iterable[HostRefusal]) -> list[Refusal]:
    """What a gate refused."""
    return [Refusal(host.what, Wall.HOSTS, host.remedy, host.opens) for host in hosts]


def found_in_output(lines: Iterable[str], box: Box, cwd: Path) -> list[Refusal]:
    """The likely refusals that the output of a command tells of, each once."""
    if not box.enforce:
        return []
    telling_lines = TellingLines()
    for line in lines:
        telling_lines.add(line)
    return list(dict.fromkeys(_explain_lines(telling_lines.lines, box, cwd)))


def untrusted_note(refusals: Iterable[Refusal], box: Box) -> str:
    """A sentence about the settings that would open something, but are not trusted; empty if there are none."""
    settings = {refusal.setting for refusal in refusals if refusal.setting}
    names = [
        name
        for name in box.untrusted
        if any(name == setting or name in _ALSO_OPENED_BY.get(setting, ()) for setting in settings)
    ]
    return NOT_TRUSTED.format(names=" and ".join(names)) if names else ""


def _explain_lines(lines: list[str], box: Box, cwd: Path) -> Iterator[Refusal]:
    lines = [line for line in lines if not _HARMLESS.search(line)]
    refused = [line for line in lines if _REFUSED.search(line)]
    for line in refused:
        for path, is_subject in _find_paths(line, cwd, box):
            refusal = of_path(path, box, writes=True if _READ_ONLY.search(line) else None)
            if refusal and (is_subject or _is_closed(box.outside(path).resolve(), box)):
                yield refusal
    if refused and any(_UNIX.search(line) for line in lines):
        yield UNIX_SOCKETS
    elif refused and any(_LISTENING.search(line) for line in lines):
        yield of_listening(box)
    if any(_PROCESSES.search(line) for line in lines) and (refusal := of_path(PROCESSES, box, writes=False)):
        yield refusal
    if refused and any(_LOCKS.search(line) for line in lines) and not box.may_write(SHARED_MEMORY):
        yield of_locks(box)
    ports = [refusal for line in lines for refusal in _explain_ports(line, box)]
    yield from ports
    if not ports and refused and any(_CONNECTING.search(line) for line in lines):
        yield _opened(
            f"It can connect to {_list_ports(box.connect)}", Wall.NETWORK, "confinement_connect", "{} opens others"
        )
    for line in lines:
        if _UNRESOLVED.search(line) and not box.connect:
            yield LOOKING_UP
        if match := _MISSING.search(line):
            yield from _explain_program(match["name"], box)


def _is_closed(real: Path, box: Box) -> bool:
    return not box.may_read(real) and real.exists()


def _opened(what: str, wall: Wall, setting: str, remedy: str = "{} opens it") -> Refusal:
    return Refusal(what, wall, remedy.format(f"the setting {setting}"), setting)


SHARED_MEMORY = Path("/dev/shm")
PROCESSES = Path("/proc")
_OF_PROCESS = re.compile(r"/proc/(?:\d+|self|thread-self)/")
UNIX_SOCKETS = Refusal(
    "It cannot make UNIX sockets, which multiprocessing needs for forkserver and Manager",
    Wall.SYSTEM_CALLS,
    "no setting allows that; a port on loopback, and the start methods fork and spawn, do without",
)
LOOKING_UP = _opened(
    "It cannot look up names of machines", Wall.NETWORK, "network", '{} opens hosts, such as "pypi.org"'
)


def of_listening(box: Box) -> Refusal:
    """Why a port cannot be served."""
    what = "It cannot listen on a port"
    return _of_own(what, Wall.NETWORK) if _may_have_its_own(box) else Refusal(what, Wall.NETWORK)


def of_locks(box: Box) -> Refusal:
    """Why shared memory cannot be used."""
    what = f"It cannot use {SHARED_MEMORY}, which locks between processes need"
    return _of_own(what, Wall.FILES) if _may_have_its_own(box) else _opened(what, Wall.FILES, "confinement_write")


def _of_own(what: str, wall: Wall) -> Refusal:
    return _opened(what, wall, "confinement_namespaces", '{}, with "auto", gives each command its own')


def _may_have_its_own(box: Box) -> bool:
    """Whether only a setting keeps a box from a loopback and a shared memory of its own."""
    return not box.namespaces and bool(abilities().namespaces)


def of_port(port: int, box: Box) -> Refusal | None:
    """Why a connection to a port is refused; None if it is not."""
    if port in (*box.connect, *box.forward) or not 0 < port < 65_536:
        return None
    what = f"It cannot connect to port {port}"
    return _opened(what, Wall.NETWORK, "confinement_connect", "{} opens it, on every host")


def _list_ports(ports: tuple[int, ...]) -> str:
    return f"no port but {', '.join(map(str, ports))}" if ports else "no port"


def _find_paths(line: str, cwd: Path, box: Box) -> Iterator[tuple[Path, bool]]:
    """The absolute paths in a line, and its names that exist in `cwd` or that it was to make below a directory there,
    such as links and mounts that lead elsewhere, as the box has them.

    With each, whether it is what the line is about: in quotation marks, or right before the refusal.
    """
    here = box.inside(cwd)
    message = _PLACE_IN_CODE.sub(" ", _SPEAKER.sub("", line))
    quoted = [next(filter(None, groups)) for groups in _QUOTED.findall(message)]
    unquoted = _QUOTED.sub(" ", message)
    subjects = [*quoted, *_SUBJECT.findall(unquoted)]
    words = _BETWEEN_WORDS.split(_SUBJECT.sub(" ", unquoted))
    for word, is_subject in (*((text, True) for text in subjects), *((text, False) for text in words)):
        text = word.rstrip(".") if word.strip(".") else ""
        if not text or text.startswith("//"):
            continue
        path = Path(os.path.abspath(here / text))  # noqa: PTH100 (links are resolved later)
        is_new = is_subject and "/" in text and os.path.lexists(box.outside(path.parent))
        if text.startswith("/") or is_new or os.path.lexists(box.outside(path)):
            yield path, is_subject


def of_path(path: Path, box: Box, *, writes: bool | None = None) -> Refusal | None:
    """Why the use of a path is refused; None if it is not, or if this process itself may not use it so.

    Args:
        path: as the command named it, absolute.
        writes: whether it was to be changed or created; None: that is not known.
    """
    try:
        real = box.outside(path).resolve()
        mode = real.stat().st_mode if real.exists() else None
    except (OSError, RuntimeError, ValueError):
        return None
    if _OF_PROCESS.match(f"{path}/") and not writes:  # one that has ended is not there, and no rule can name one
        return None if box.may_read(PROCESSES) else of_path(PROCESSES, box, writes=False)
    is_program = mode is not None and stat.S_ISREG(mode) and mode & 0o111 and box.may_read(real)
    if real == Path("/") or real in box.devices or box.may_write(real):
        return None
    if is_program and writes is None:  # it ran, and told of another
        return None
    if mode is None and _LOCKS.search(f"'{path}'"):
        return None
    if box.worktree is not None and real.is_relative_to(box.worktree):
        return Refusal(f"{path} is in a checkout that may only be read", Wall.FILES, "give the task a worktree")
    if STATE in real.parts or real.is_relative_to(outside.directory().resolve()):
        return Refusal(f"{path} belongs to Workbench and cannot be used", Wall.FILES, "no setting opens it")
    if mode is not None and stat.S_ISSOCK(mode):
        return Refusal(f"{path} is a UNIX socket", Wall.SYSTEM_CALLS, "no setting opens those")
    if mode is not None and (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)):
        can_open = os.access(real, os.R_OK)
        return _opened(f"The device {path} is closed", Wall.FILES, "confinement_write") if can_open else None
    if writes or mode is None or box.may_read(real):
        can_write = writes is not False and os.access(real if mode is not None else real.parent, os.W_OK)
        is_mounted = any(real.is_relative_to(mount.source) for mount in box.mounts if not mount.writable)
        remedy = "{} opens it, once the workplace does not name it" if is_mounted else "{} opens it"
        return _opened(f"{path} cannot be written", Wall.FILES, "confinement_write", remedy) if can_write else None
    more = " (confinement_write: to write it, too)"
    can_read = os.access(real, os.R_OK)
    return (
        _opened(f"{path} cannot be read", Wall.FILES, "confinement_read", f"{{}} opens it{more}") if can_read else None
    )


def _explain_ports(line: str, box: Box) -> Iterator[Refusal]:
    if _LISTENING.search(line):
        return
    ports = [int(match["named"] or match["pair"] or match["address"]) for match in _PORT.finditer(line)]
    if box.has_own_network and (_NOT_REACHED.search(line) or _UNREACHED.search(line)):
        yield from (_of_own_network(port) for port in ports if port not in box.forward and _is_served(port))
    elif not box.has_own_network and (_REFUSED.search(line) or _UNREACHED.search(line)):
        yield from filter(None, (of_port(port, box) for port in ports))


def _of_own_network(port: int) -> Refusal:
    what = f"It cannot connect to port {port} of this machine, because its loopback is its own"
    return _opened(what, Wall.NETWORK, "private", f'{{}} opens it, with "127.0.0.1:{port}"')


def _is_served(port: int) -> bool:
    """Whether something listens on a TCP port of this machine: only then could the box have refused it."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            rows = (line.split() for line in Path(table).read_text().splitlines()[1:])
            if any(row[3] == _LISTENS and int(row[1].rpartition(":")[2], 16) == port for row in rows):
                return True
    return False


def _explain_program(name: str, box: Box) -> Iterator[Refusal]:
    """A program that is on this process's PATH, but outside the box."""
    program = shutil.which(name)
    if program is None:
        return
    places = [Path(program).parent, Path(program).resolve().parent]
    if directories := [
        _directory_to_open(place) for place in dict.fromkeys(places) if not box.may_read(place.resolve())
    ]:
        text = ":".join(map(str, dict.fromkeys(directories)))
        what, remedy = f"The program {name} is outside it, at {program}", f"add {text} to {{}}"
        yield _opened(what, Wall.FILES, "confinement_read", remedy)


def _directory_to_open(place: Path) -> Path:
    """The directory to open for a program: one that holds its libraries too, but never a home, or what it has of all
    programs."""
    parent = place.parent
    return parent if place.name == "bin" and parent not in (home(), home() / ".local", Path("/")) else place
