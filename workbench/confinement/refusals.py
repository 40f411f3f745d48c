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
from dataclasses import dataclass, field
from pathlib import Path

from workbench.confinement.box import Box
from workbench.state.home import home
from workbench.state.root import STATE
from workbench.state.settings_file import NOT_TRUSTED

LINES = 200
LINE_LENGTH = 2_000
SHOWN = 5
ONCE_STARTED = "A changed setting counts once the server and the agent are started again."
HEADING = f"This may be a refusal by its box. {ONCE_STARTED}"

_REFUSED = re.compile(r"permission denied|operation not permitted|\bEACCES\b|\bEPERM\b|PermissionError", re.I)
_UNREACHED = re.compile(r"(failed|could ?n[o']t|unable) (to )?connect|connection to server", re.I)
_UNRESOLVED = re.compile(
    r"could not resolve|temporary failure in name resolution|name or service not known|EAI_AGAIN|getaddrinfo", re.I
)
_MISSING = re.compile(r"(?:^|[\s:'])(?P<name>[\w.+-]+)['’]?: (?:(?:command )?not found|there is no such command.*)\s*$")
_SPEAKER = re.compile(r"^\S+: (?:(?:line )?\d+: |(?=\S.*: ))")
"""The beginning of a message: the program, and a shell's line of its script, neither of which was refused."""
_SUBJECT = re.compile(r"(?:^|[\s:])(/[^:'\"‘’]*?): (?:permission denied|operation not permitted)", re.I)
"""A path that stands before the refusal, with its blanks."""
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
_TELLING = (_REFUSED, _UNREACHED, _UNRESOLVED, _MISSING, _LISTENING, _CONNECTING, _LOCKS)


@dataclass
class TellingLines:
    """The lines of an output that may tell of a refusal, at most `LINES` of them."""

    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Keep a line if it may tell of a refusal."""
        start = line[:LINE_LENGTH]
        if len(self.lines) < LINES and any(pattern.search(start) for pattern in _TELLING):
            self.lines.append(start)


def explanation(lines: Iterable[str], box: Box, cwd: Path) -> str:
    """A text about the box's likely refusals, with the setting that allows each; empty without a sign of one.

    Args:
        lines: the output of a command that has failed.
        cwd: the directory it ran in.
    """
    if not box.enforce:
        return ""
    telling_lines = TellingLines()
    for line in lines:
        telling_lines.add(line)
    refusals = list(dict.fromkeys(_explain_lines(telling_lines.lines, box, cwd)))
    if not refusals:
        return ""
    more = [f"- and {len(refusals) - SHOWN} more"] if len(refusals) > SHOWN else []
    text = "\n".join([HEADING, *(f"- {refusal}" for refusal in refusals[:SHOWN]), *more])
    names = [name for name in box.untrusted if name in text]
    return text if not names else f"{text}\n- {NOT_TRUSTED.format(names=' and '.join(names))}"


def _explain_lines(lines: list[str], box: Box, cwd: Path) -> Iterator[str]:
    refused = [line for line in lines if _REFUSED.search(line)]
    for line in refused:
        for path in _find_paths(line, cwd):
            yield from _explain_path(path, box)
    if refused and any(_LISTENING.search(line) for line in lines):
        yield "It cannot listen on a port, and no setting allows that."
    if refused and any(_LOCKS.search(line) for line in lines) and not box.may_write(Path("/dev/shm")):
        yield "It cannot use /dev/shm, which locks between processes need: the setting confinement_write opens it."
    ports = [text for line in lines for text in _explain_ports(line, box)]
    yield from ports
    if not ports and refused and any(_CONNECTING.search(line) for line in lines):
        yield f"It can connect to {_list_ports(box.connect)}: the setting confinement_connect opens others."
    for line in lines:
        if _UNRESOLVED.search(line) and not box.connect:
            yield "It cannot look up names of machines: the setting confinement_connect allows that with a port (443)."
        if match := _MISSING.search(line):
            yield from _explain_program(match["name"], box)


def _list_ports(ports: tuple[int, ...]) -> str:
    return f"no port but {', '.join(map(str, ports))}" if ports else "no port"


def _find_paths(line: str, cwd: Path) -> Iterator[Path]:
    """The absolute paths in a line, and its names that exist in `cwd`, such as links that lead elsewhere."""
    message = _SPEAKER.sub("", line)
    quoted = [next(filter(None, groups)) for groups in _QUOTED.findall(message)]
    unquoted = _QUOTED.sub(" ", message)
    quoted += _SUBJECT.findall(unquoted)
    for word in (*quoted, *_BETWEEN_WORDS.split(_SUBJECT.sub(" ", unquoted))):
        text = word.rstrip(".") if word.strip(".") else ""
        if text and not text.startswith("//") and (text.startswith("/") or os.path.lexists(cwd / text)):
            yield Path(os.path.abspath(cwd / text))  # noqa: PTH100 (links are resolved later)


def _explain_path(path: Path, box: Box) -> Iterator[str]:
    try:
        real = path.resolve()
        mode = real.stat().st_mode if real.exists() else None
    except (OSError, RuntimeError, ValueError):
        return
    is_program = mode is not None and stat.S_ISREG(mode) and mode & 0o111 and box.may_read(real)
    if real == Path("/") or real in box.devices or box.may_write(real) or is_program:  # it ran, and told of another
        return
    if mode is None and _LOCKS.search(f"'{path}'"):
        return
    if STATE in real.parts:
        yield f"{path} belongs to Workbench, and no setting opens it."
    elif mode is not None and stat.S_ISSOCK(mode):
        yield f"{path} is a UNIX socket, and no setting opens those."
    elif mode is not None and (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and os.access(real, os.R_OK):
        yield f"The device {path} is closed: the setting confinement_write opens it."
    elif mode is None or box.may_read(real):
        if os.access(real if mode is not None else real.parent, os.W_OK):
            yield f"{path} cannot be written: the setting confinement_write opens it."
    elif os.access(real, os.R_OK):
        yield f"{path} cannot be read: the setting confinement_read opens it (confinement_write: to write it, too)."


def _explain_ports(line: str, box: Box) -> Iterator[str]:
    if _LISTENING.search(line) or not (_REFUSED.search(line) or _UNREACHED.search(line)):
        return
    for match in _PORT.finditer(line):
        port = int(match["named"] or match["pair"] or match["address"])
        if 0 < port < 65_536 and port not in box.connect:
            yield f"It cannot connect to port {port}: the setting confinement_connect opens it, on every host."


def _explain_program(name: str, box: Box) -> Iterator[str]:
    """A program that is on this process's PATH, but outside the box."""
    program = shutil.which(name)
    if program is None:
        return
    places = [Path(program).parent, Path(program).resolve().parent]
    if directories := [
        _directory_to_open(place) for place in dict.fromkeys(places) if not box.may_read(place.resolve())
    ]:
        text = ":".join(map(str, dict.fromkeys(directories)))
        yield f"The program {name} is outside it, at {program}: add {text} to the setting confinement_read."


def _directory_to_open(place: Path) -> Path:
    """The directory to open for a program: one that holds its libraries too, but never a home."""
    parent = place.parent
    return parent if place.name == "bin" and parent not in (home(), Path("/")) else place
