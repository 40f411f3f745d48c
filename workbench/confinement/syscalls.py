"""A filter of system calls, for the ways out of a box that Landlock cannot close.

Refused are: sockets that are not TCP (UNIX sockets reach Docker and the desktop's services, which run commands for
whoever asks; multipath TCP passes by the rules for ports), pairs of UNIX datagram sockets (one of them can still send
to any other socket, even open files), connecting while sending, listening on a port that was never bound, limits of
other processes, keys and shared memory of the system, typing into a terminal, new namespaces and those of other
processes, setting the bits that run a program with its owner's rights, and io_uring, which no filter sees.
A box with a network and shared memory of its own may use those as it likes.

`clone3` and `openat2` are reported as missing, because a filter cannot read the structures that they take; programs
fall back to `clone` and `openat`. Source: https://docs.kernel.org/userspace-api/seccomp_filter.html.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
import stat
import struct
import sys
from functools import cache

_Step = tuple[int, int, int, int]
"""An instruction: operation, steps to skip if it holds, steps to skip if not, operand."""
_Steps = list[_Step]

_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "ioctl": (16, 29),
    "open": (2, None),
    "openat": (257, 56),
    "openat2": (437, 437),
    "creat": (85, None),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "clone": (56, 220),
    "clone3": (435, 435),
    "unshare": (272, 97),
    "setns": (308, 268),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "listen": (50, 201),
    "prlimit64": (302, 261),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
_X32 = 0x40000000
"""From here on, x86_64 has the same calls a second time."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE = 0, 4

_ALLOW: _Steps = [(_RETURN, 0, 0, 0x7FFF0000)]
_REFUSE: _Steps = [(_RETURN, 0, 0, 0x00050000 | errno.EPERM)]
_ABSENT: _Steps = [(_RETURN, 0, 0, 0x00050000 | errno.ENOSYS)]

_MODE_ARGUMENT = {"creat": 1, "mknod": 1, "mknodat": 2, "chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
_FLAGS_ARGUMENT = {"open": 1, "openat": 2}
"""Which argument is the mode, or the flags that decide whether the next one is a mode."""
_CREATES = 0o100 | 0o20000000
"""O_CREAT and O_TMPFILE."""
_OF_NETWORK = ("send", "listen")
_OF_MEMORY = ("mq_", "msg", "sem", "shm")
"""How the names of calls begin that are refused because they reach what is shared."""
_NEW_NAMESPACES = 0x7E020000
_NEW_TIME = 0x80
"""CLONE_NEWTIME; in `clone` this bit belongs to the number of a signal."""
_MSG_FASTOPEN = 0x20000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_KINDS = 0xF
"""The kind of a socket; above it are flags."""
_PR_GET_SECCOMP = 21


@cache
def available() -> bool:
    """Whether this kernel can filter, and this processor's numbers of system calls are known."""
    return sys.platform == "linux" and platform.machine() in _MACHINES and ctypes.CDLL(None).prctl(_PR_GET_SECCOMP) >= 0


@cache
def program(*, names: bool, setgid: bool = False, own_network: bool = False, own_memory: bool = False) -> bytes:
    """The filter for this machine, as the kernel takes it.

    Args:
        names: UDP is allowed, to look up names.
        setgid: the set-group-ID bit may be set, which has another meaning for directories.
        own_network: there is nobody else on its network, so that all of TCP and UDP is allowed.
        own_memory: the shared memory and message queues of the system are its own.
    """
    machine = platform.machine()
    column = list(_MACHINES).index(machine)
    steps: _Steps = [(_LOAD, 0, 0, _NUMBER)]
    if machine == "x86_64":
        steps += _if(_AT_LEAST, _X32, _REFUSE, [])
    privileged = stat.S_ISUID if setgid else stat.S_ISUID | stat.S_ISGID
    allowed = (_OF_NETWORK if own_network else ()) + (_OF_MEMORY if own_memory else ())
    for name, numbers in _NUMBERS.items():
        if (number := numbers[column]) is not None and not name.startswith(allowed):
            steps += _if(_EQUAL, number, _steps_for(name, names or own_network, privileged), [])
    filter_steps = [(_LOAD, 0, 0, _MACHINE), *_if(_EQUAL, _MACHINES[machine], [*steps, *_ALLOW], _REFUSE)]
    return b"".join(struct.pack("=HBBI", *step) for step in filter_steps)


def _steps_for(name: str, names: bool, privileged: int) -> _Steps:
    if name in _MODE_ARGUMENT:
        return _argument(_MODE_ARGUMENT[name], _if(_ANY_BIT, privileged, _REFUSE, _ALLOW))
    if name in _FLAGS_ARGUMENT:
        flags = _FLAGS_ARGUMENT[name]
        mode = _argument(flags + 1, _if(_ANY_BIT, privileged, _REFUSE, _ALLOW))
        return _argument(flags, _if(_ANY_BIT, _CREATES, mode, _ALLOW))
    match name:
        case "socket":
            return _socket_steps(names)
        case "socketpair":
            # SOCK_RAW makes a datagram socket too. cargo needs SOCK_SEQPACKET, which reaches its peer only.
            kinds = _one_of((socket.SOCK_STREAM, socket.SOCK_SEQPACKET), _ALLOW, _REFUSE)
            return _argument(1, [(_AND, 0, 0, _KINDS), *kinds])
        case "clone":
            return _argument(0, _if(_ANY_BIT, _NEW_NAMESPACES, _REFUSE, _ALLOW))
        case "unshare":
            return _argument(0, _if(_ANY_BIT, _NEW_NAMESPACES | _NEW_TIME, _REFUSE, _ALLOW))
        case "sendto" | "sendmmsg":
            return _argument(3, _if(_ANY_BIT, _MSG_FASTOPEN, _REFUSE, _ALLOW))
        case "sendmsg":
            return _argument(2, _if(_ANY_BIT, _MSG_FASTOPEN, _REFUSE, _ALLOW))
        case "prlimit64":
            return _argument(0, _if(_EQUAL, 0, _ALLOW, _REFUSE))
        case "ioctl":
            return _argument(1, _one_of((_TIOCSTI, _TIOCLINUX), _REFUSE, _ALLOW))
        case _:
            return _ABSENT if name.startswith(("io_uring", "clone3", "openat2")) else _REFUSE


def _socket_steps(names: bool) -> _Steps:
    stream = _argument(2, _one_of((0, socket.IPPROTO_TCP), _ALLOW, _REFUSE))
    datagram = _argument(2, _one_of((0, socket.IPPROTO_UDP), _ALLOW, _REFUSE)) if names else _REFUSE
    kind = _if(_EQUAL, socket.SOCK_STREAM, stream, _if(_EQUAL, socket.SOCK_DGRAM, datagram, _REFUSE))
    internet = [*_argument(1, [(_AND, 0, 0, _KINDS)]), *kind]
    # Addresses of the machine's own interfaces; changing them takes privileges that nobody has here.
    interfaces = _argument(2, _if(_EQUAL, 0, _ALLOW, _REFUSE))
    family = _one_of((socket.AF_INET, socket.AF_INET6), internet, _if(_EQUAL, 16, interfaces, _REFUSE))
    return _argument(0, family)


def _argument(number: int, then: _Steps) -> _Steps:
    """Load the lower half of an argument; all that are tested have 32 bits. Both machines are little-endian."""
    return [(_LOAD, 0, 0, 16 + 8 * number), *then]


def _if(test: int, value: int, then: _Steps, otherwise: _Steps) -> _Steps:
    """`then` must return; it has at most 255 steps."""
    return [(test, 0, len(then), value), *then, *otherwise]


def _one_of(values: tuple[int, ...], then: _Steps, otherwise: _Steps) -> _Steps:
    for value in reversed(values):
        otherwise = _if(_EQUAL, value, then, otherwise)
    return otherwise
