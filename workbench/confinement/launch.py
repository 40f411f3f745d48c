"""Confines itself, then becomes a command: `python -I -S launch.py RULES COMMAND…`.

A program of its own, because a process with threads cannot confine a child before it executes. It
imports as little as it can: it runs for every task and for every git command in a worktree. RULES
is what `Box.argv` writes, as JSON: lists of paths ``read`` and ``write``, ``connect`` (TCP ports),
``enforce``, ``packages`` (where py_landlock is), ``rlimits`` (by number).

Exit status: 125 if the rules cannot be applied (the command has not run then), 126 if the command
cannot be executed, 127 if there is none; else the command's own.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

CANNOT_CONFINE, CANNOT_EXECUTE, NOT_FOUND = 125, 126, 127


def main(rules: str, *command: str) -> int:
    """Become the command, or say why not."""
    order = json.loads(rules)
    os.closerange(3, 1 << 16)
    try:
        for number, most in order["rlimits"].items():
            _limit(int(number), most)
        if order["enforce"]:
            sys.path.append(order["packages"])
            confine(order["read"], order["write"], order["connect"])
    except Exception as error:
        return _fail(CANNOT_CONFINE, f"The command could not be confined, so it was not run: {error}")
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        return _fail(NOT_FOUND, f"{command[0]}: there is no such command, or none to interpret it.")
    except OSError as error:
        return _fail(CANNOT_EXECUTE, f"{command[0]}: {error.strerror}.")


def confine(read: list[str], write: list[str], connect: list[int]) -> None:
    """From here on, this process and all it starts touch only these paths and ports."""
    # ctypes would run `ldconfig`, and sometimes a compiler, to find what every Linux has.
    import ctypes.util

    ctypes.util.find_library = lambda name: f"lib{name}.so.6"
    from py_landlock import AccessFs, Landlock

    reading = AccessFs.READ_FILE | AccessFs.READ_DIR | AccessFs.EXECUTE
    writing = ~(AccessFs.MAKE_CHAR | AccessFs.MAKE_BLOCK | AccessFs.IOCTL_DEV)
    of_a_file = AccessFs.READ_FILE | AccessFs.WRITE_FILE | AccessFs.TRUNCATE | AccessFs.EXECUTE
    rules = Landlock(strict=False)
    for paths, access in ((read, reading), (write, writing)):
        for path in filter(_within_reach, map(Path, paths)):
            # A rule about a file may not name the rights of a directory (EINVAL).
            rules.add_path_rule(path, access=access if path.is_dir() else access & of_a_file)
    if connect:
        rules.allow_network(*connect, bind=False)
    rules.apply()


def _within_reach(path: Path) -> bool:
    try:
        path.stat()
    except OSError:  # what cannot be reached needs no rule
        return False
    return True


def _limit(number: int, most: int) -> None:
    _, hard = resource.getrlimit(number)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(number, (most, most))


def _fail(status: int, why: str) -> int:
    sys.stderr.write(f"{why}\n")
    return status


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
