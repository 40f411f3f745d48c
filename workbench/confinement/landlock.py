"""Landlock's rights, and those that this kernel knows.

Source: https://docs.kernel.org/userspace-api/landlock.html and Linux, include/uapi/linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import sys
from enum import IntFlag

CREATE_RULESET = 444
"""The same number on all supported processors."""


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


class LandlockScope(IntFlag):
    """Actions that may not reach outside the box (``LANDLOCK_SCOPE_…``)."""

    ABSTRACT_UNIX_SOCKET = 1 << 0
    SIGNAL = 1 << 1


EVERYTHING = Fs((1 << 16) - 1)
READ = Fs.EXECUTE | Fs.READ_FILE | Fs.READ_DIR
WRITE = EVERYTHING & ~(Fs.MAKE_CHAR | Fs.MAKE_BLOCK | Fs.IOCTL_DEV)
DEVICE = Fs.READ_FILE | Fs.WRITE_FILE | Fs.TRUNCATE | Fs.IOCTL_DEV

_FS = {1: Fs((1 << 13) - 1), 2: Fs.REFER, 3: Fs.TRUNCATE, 5: Fs.IOCTL_DEV}
_NET_SINCE = 4
_SCOPE_SINCE = 6


def version() -> int:
    """The version of Landlock's interface; 0 if it is missing or switched off."""
    if sys.platform != "linux":
        return 0
    syscall = ctypes.CDLL(None).syscall
    syscall.restype = ctypes.c_long
    abi: int = syscall(ctypes.c_long(CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return max(0, abi)


def handled(abi: int) -> tuple[Fs, Net, LandlockScope]:
    """The rights that a kernel with this version can refuse unless they are allowed."""
    fs = Fs(sum(rights for since, rights in _FS.items() if since <= abi))
    net = Net.BIND_TCP | Net.CONNECT_TCP if abi >= _NET_SINCE else Net(0)
    scope = LandlockScope.ABSTRACT_UNIX_SOCKET | LandlockScope.SIGNAL if abi >= _SCOPE_SINCE else LandlockScope(0)
    return fs, net, scope
