"""What this kernel's Landlock can enforce: rights by version of its interface, and what they mean to people.

Source: Linux, Documentation/userspace-api/landlock.rst and include/uapi/linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from enum import IntFlag
from functools import cache


class Fs(IntFlag):
    """Rights on files, and on directories with all that is beneath them (``LANDLOCK_ACCESS_FS_…``)."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


class Net(IntFlag):
    """Rights on TCP ports (``LANDLOCK_ACCESS_NET_…``)."""

    BIND_TCP = 1 << 0
    CONNECT_TCP = 1 << 1


class Scope(IntFlag):
    """What may not leave the box (``LANDLOCK_SCOPE_…``)."""

    ABSTRACT_UNIX_SOCKET = 1 << 0
    SIGNAL = 1 << 1


READ = Fs.EXECUTE | Fs.READ_FILE | Fs.READ_DIR
WRITE = ~(Fs.MAKE_CHAR | Fs.MAKE_BLOCK | Fs.IOCTL_DEV)
DEVICE = Fs.READ_FILE | Fs.WRITE_FILE | Fs.TRUNCATE | Fs.IOCTL_DEV
TERMINAL = Fs.READ_FILE | Fs.WRITE_FILE
ALL_FS = Fs((1 << 16) - 1)

_SINCE: tuple[tuple[int, Fs | Net | Scope], ...] = (
    (1, Fs((1 << 13) - 1)),
    (2, Fs.REFER),
    (3, Fs.TRUNCATE),
    (4, Net.BIND_TCP | Net.CONNECT_TCP),
    (5, Fs.IOCTL_DEV),
    (6, Scope.ABSTRACT_UNIX_SOCKET | Scope.SIGNAL),
)

_STEPS: tuple[tuple[int, str, str], ...] = (
    (
        1,
        "Files are read and written only where the box allows it; processes outside cannot be traced or read.",
        "Nothing keeps a worker inside its worktree (Landlock needs Linux 5.13 or newer and must be switched on).",
    ),
    (
        2,
        "Files are moved and linked between directories only within the box.",
        "A worker cannot move files between directories, not even its own (Linux 5.19).",
    ),
    (3, "Files outside cannot be emptied.", "A worker can empty files outside, though not read them (Linux 6.2)."),
    (
        4,
        "TCP goes to the ports allowed only, and none is served.",
        "A worker can open TCP connections to anywhere, and serve ports (Linux 6.7).",
    ),
    (
        6,
        "Processes outside get no signals, and no connections by abstract sockets.",
        "A worker can end other processes of the same user, and reach them by abstract sockets (Linux 6.12).",
    ),
)
"""Version, what it brings, what its absence means."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What this machine enforces. `abi` is 0 where there is no Landlock."""

    abi: int
    enforced: tuple[str, ...]
    missing: tuple[str, ...]
    summary: str

    @property
    def any(self) -> bool:
        """Whether there is Landlock at all."""
        return self.abi > 0

    @property
    def all(self) -> bool:
        """Whether everything that Workbench asks for is enforced."""
        return not self.missing


@cache
def abilities() -> Abilities:
    """What this kernel enforces; asked once."""
    return of_version(version())


def version() -> int:
    """The version of Landlock's interface; 0 where there is none, or it is switched off."""
    if sys.platform != "linux":
        return 0
    syscall = ctypes.CDLL(None).syscall
    syscall.restype = ctypes.c_long
    found: int = syscall(ctypes.c_long(444), None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return max(0, found)


def of_version(abi: int) -> Abilities:
    """What a kernel with this version enforces."""
    enforced = tuple(yes for since, yes, _ in _STEPS if abi >= since)
    missing = tuple(no for since, _, no in _STEPS if abi < since) if abi else (_STEPS[0][2],)
    if not abi:
        summary = "Workers are not confined: this system has no Landlock."
    elif missing:
        summary = f"Workers are confined in part (Landlock, version {abi})."
    else:
        summary = f"Workers are confined (Landlock, version {abi})."
    return Abilities(abi, enforced, missing, summary)


def handled(abi: int) -> tuple[Fs, Net, Scope]:
    """What to ask of a kernel with this version: rights that are refused unless allowed."""
    fs, net, scope = Fs(0), Net(0), Scope(0)
    for since, rights in _SINCE:
        if since > abi:
            continue
        match rights:
            case Fs():
                fs |= rights
            case Net():
                net |= rights
            case Scope():
                scope |= rights
    return fs, net, scope
