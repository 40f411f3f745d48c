"""Finds all refusals by a box in a trace of system calls, made by `strace` around the launcher.

`strace` runs outside the box and sees what programs keep to themselves. Its own filter of system calls
(`--seccomp-bpf`) is not used, although it is faster: it hides the calls that the box's filter refuses.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from workbench.confinement import refusals
from workbench.confinement.box import Box
from workbench.confinement.refusals import Refusal

INSTALL = "Install strace (`apt install strace`) to find all refusals, those too that a program does not print."
_TRACED = "trace=%file,%network,%ipc,mq_open"

_FAILED = re.compile(r"^\d+ +(?P<call>\w+)\((?P<arguments>.*)\) += -1 (?P<error>EACCES|EPERM|EROFS) ")
_TEXT = r'"(?P<{}>(?:[^"\\]|\\.)*)"'
_PATH = re.compile(rf"(?:(?:AT_FDCWD|\d+)<(?P<directory>(?:[^>\\]|\\.)*)>(?:\(deleted\))?, )?{_TEXT.format('path')}")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-f]{2}|.)")
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b"a": b"\a", b"b": b"\b", b"e": b"\x1b"}
_PORT = re.compile(r"sin6?_port=htons\((\d+)\)")
_UNIX_PATH = re.compile(_TEXT.format("path").replace('"', 'sun_path="', 1))
_READ_BY = frozenset(
    (
        *("stat", "lstat", "statx", "newfstatat", "readlink", "readlinkat", "getxattr", "lgetxattr", "listxattr"),
        *("execve", "execveat", "chdir", "statfs", "inotify_add_watch", "name_to_handle_at", "llistxattr"),
    )
)
_OPENED_BY = frozenset(("open", "openat", "openat2", "access", "faccessat", "faccessat2"))
_FOR_WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|\bW_OK")
_BOTH_PATHS = frozenset(("rename", "renameat", "renameat2", "link", "linkat"))
_SECOND_PATH = frozenset(("symlink", "symlinkat"))
"""Their first path is what the link says, and not used."""
_OTHERS = {
    "shmget": "It cannot use System V shared memory",
    "semget": "It cannot use System V semaphores",
    "msgget": "It cannot use System V message queues",
    "mq_open": "It cannot use message queues",
    "socketpair": "It cannot make pairs of UNIX datagram sockets",
}
BYTECODE = "__pycache__"
_UDP = Refusal("It cannot use UDP", refusals.Wall.NETWORK)


def tracer(output: Path) -> list[str]:
    """What to put in front of a box's command line, so that its failed system calls are written to a file.

    Empty where there is no `strace`.
    """
    program = shutil.which("strace")
    return [program, "-f", "-qq", "-y", "-Z", "-e", _TRACED, "-o", str(output)] if program else []


def found_in_trace(lines: Iterable[str], box: Box, cwd: Path) -> list[Refusal]:
    """The refusals that a trace shows, each once.

    Args:
        lines: of the trace.
        cwd: the directory that the command was started in.
    """
    if not box.enforce:
        return []
    calls = filter(None, map(_FAILED.match, lines))
    return list(dict.fromkeys(found for call in calls for found in _explain(call["call"], call["arguments"], box, cwd)))


def _explain(call: str, arguments: str, box: Box, cwd: Path) -> Iterator[Refusal]:
    if call == "socket":
        if "AF_UNIX" in arguments:
            yield refusals.UNIX_SOCKETS
        elif "SOCK_DGRAM" in arguments:
            yield _UDP if box.connect else refusals.LOOKING_UP
    elif call in ("connect", "sendto", "sendmsg"):
        yield from _explain_address(arguments, box)
    elif call in ("bind", "listen"):
        yield refusals.of_listening(box)
    elif call in _OTHERS:
        yield Refusal(_OTHERS[call], refusals.Wall.SYSTEM_CALLS)
    else:
        writes = call not in _READ_BY and (call not in _OPENED_BY or bool(_FOR_WRITING.search(arguments)))
        for path in _paths(call, arguments, box.inside(cwd)):
            if writes and BYTECODE in path.parts:
                continue  # Python does without
            if path.parent == refusals.SHARED_MEMORY and not box.may_write(path):
                yield refusals.of_locks(box)
            elif refusal := refusals.of_path(path, box, writes=writes):
                yield refusal


def _explain_address(arguments: str, box: Box) -> Iterator[Refusal]:
    if port := _PORT.search(arguments):
        if refusal := refusals.of_port(int(port[1]), box):
            yield refusal
    elif path := _UNIX_PATH.search(arguments):
        yield Refusal(f"{_decoded(path['path'])} is a UNIX socket", refusals.Wall.SYSTEM_CALLS)


def _paths(call: str, arguments: str, cwd: Path) -> Sequence[Path]:
    """The paths that a call names; relative ones start at the directory that it names, else at `cwd`."""
    found = [
        Path(os.path.abspath(cwd / _decoded(match["directory"] or "") / _decoded(match["path"])))  # noqa: PTH100
        for match in _PATH.finditer(arguments)
    ]
    if call in _SECOND_PATH:
        return found[1:2]
    return found[: 2 if call in _BOTH_PATHS else 1]


def _decoded(text: str) -> str:
    """A text of `strace`, with its escapes replaced."""

    def character(match: re.Match[bytes]) -> bytes:
        escaped = match[1]
        if escaped.isdigit():
            return bytes([int(escaped, 8) & 0xFF])
        return bytes([int(escaped[1:], 16)]) if escaped[:1] == b"x" else _LETTERS.get(escaped, escaped)

    return os.fsdecode(_ESCAPE.sub(character, os.fsencode(text)))
