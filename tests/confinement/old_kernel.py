"""Becomes a command on a kernel that seems to have no Landlock: `python -I old_kernel.py COMMAND…`.

A filter of system calls answers ENOSYS to whoever asks for a ruleset, as a kernel before 5.13 does.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

CREATE_RULESET = 444
STEPS = (
    (0x20, 0, 0, 0),  # load the number of the call
    (0x15, 0, 1, CREATE_RULESET),
    (0x06, 0, 0, 0x00050000 | errno.ENOSYS),
    (0x06, 0, 0, 0x7FFF0000),  # allow
)


class Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def main(*command: str) -> None:
    """See the module."""
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(STEPS), b"".join(struct.pack("=HBBI", *step) for step in STEPS))
    for arguments in ((38, 1, 0, 0, 0), (22, 2, ctypes.addressof(program), 0, 0)):
        if libc.prctl(arguments[0], *map(ctypes.c_ulong, arguments[1:])):
            raise OSError(ctypes.get_errno(), "prctl")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
