"""Becomes a command on a system that refuses some calls: `python -I filtered.py SYSTEM COMMAND…`.

`old-kernel` seems to have no Landlock, as before 5.13. `container` is like one of Docker's: its profile of system calls
refuses namespaces, mounts, keys and tracing, and root has the capabilities that Docker leaves it. Source:
https://github.com/moby/profiles/blob/main/seccomp/default.json (what it does not list is EPERM, `clone3` is ENOSYS).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

CREATE_RULESET = 444
CLONE, CLONE3 = {"aarch64": (220, 435)}.get(platform.machine(), (56, 435))
NEW_NAMESPACES = 0x7E020000
_MOUNTING = (
    428,
    429,
    430,
    431,
    432,
    433,
    442,
)  # open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr
REFUSED = {
    # keyctl, add_key, request_key, mount, umount2, pivot_root, swapon, reboot, sethostname, init_module, unshare,
    # perf_event_open, setns, name_to_handle_at, open_by_handle_at, bpf, userfaultfd
    "x86_64": (250, 248, 249, 165, 166, 155, 167, 169, 170, 175, 272, 298, 308, 303, 304, 321, 323),
    "aarch64": (219, 217, 218, 40, 39, 41, 224, 142, 161, 105, 97, 241, 268, 264, 265, 280, 282),
}
RING = (425, 426, 427)
CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31)
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, MKNOD,
AUDIT_WRITE and SETFCAP."""

Step = tuple[int, int, int, int]
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW: Step = (RETURN, 0, 0, 0x7FFF0000)


class Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


class Whose(ctypes.Structure):
    """``struct __user_cap_header_struct``."""

    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def refuse(number: int, code: int) -> list[Step]:
    """The steps that answer a call with an error."""
    return [(EQUAL, 0, 1, number), (RETURN, 0, 0, 0x00050000 | code)]


def steps_of(system: str) -> list[Step]:
    """The filter of a system, for the number of a call."""
    steps: list[Step] = [(LOAD, 0, 0, 0)]
    if system == "old-kernel":
        return [*steps, *refuse(CREATE_RULESET, errno.ENOSYS), ALLOW]
    for number in (*REFUSED[platform.machine()], *_MOUNTING, *RING):
        steps += refuse(number, errno.EPERM)
    steps += refuse(CLONE3, errno.ENOSYS)
    # Its first argument has the flags.
    flags = [(LOAD, 0, 0, 16), (ANY_BIT, 0, 1, NEW_NAMESPACES), (RETURN, 0, 0, 0x00050000 | errno.EPERM)]
    return [*steps, (EQUAL, 0, len(flags), CLONE), *flags, ALLOW]


def keep_capabilities(libc: ctypes.CDLL) -> None:
    """Have no more of root's powers than in a container."""
    for number in set(range(64)) - set(CAPABILITIES):
        libc.prctl(
            24, *map(ctypes.c_ulong, (number, 0, 0, 0))
        )  # PR_CAPBSET_DROP; refused beyond the last, or to others
    kept = sum(1 << number for number in CAPABILITIES) if os.geteuid() == 0 else 0
    powers = (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)
    if libc.capset(ctypes.byref(Whose(0x20080522, 0)), powers):
        raise OSError(ctypes.get_errno(), "capset")


def main(system: str, *command: str) -> None:
    """See the module."""
    libc = ctypes.CDLL(None, use_errno=True)
    if system == "container":
        keep_capabilities(libc)
    steps = [struct.pack("=HBBI", *step) for step in steps_of(system)]
    program = Program(len(steps), b"".join(steps))
    for arguments in ((38, 1, 0, 0, 0), (22, 2, ctypes.addressof(program), 0, 0)):
        if libc.prctl(arguments[0], *map(ctypes.c_ulong, arguments[1:])):
            raise OSError(ctypes.get_errno(), "prctl")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
