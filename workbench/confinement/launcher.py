"""Confines itself, then becomes a command: `python -I -S launcher.py ORDERS -- COMMAND…`.

A program of its own, because a process with threads cannot confine a child before it executes. It imports as little as
it can: it runs for every task and for every git command in a worktree. Its caller decides what is allowed; it passes
that on to the kernel. ORDERS are arguments, in any order:

    fs=MASK net=MASK scope=MASK   the rights that Landlock handles (hexadecimal); without ``fs`` nothing is confined
    allow=MASK:PATH               rights on a directory with its content, or on a file; a path that is missing,
                                  or contains a symbolic link, is skipped: the caller has resolved it
    connect=PORT                  a TCP port that may be connected to
    filter=BYTES                  a filter of system calls (hexadecimal)
    limit=NUMBER:MOST             a resource limit
    home=DIRECTORY                is created if it is missing
    link=PATH:TARGET              a symbolic link that is created if it is missing, with its directory
    guard=SECONDS                 a process outside the box waits for the command, ends all processes that it left,
                                  and then ends as the command did; after SIGTERM the command has this long to end
                                  (Linux)

Exit codes: 125 it could not confine itself (the command never ran), 126 the command cannot be executed, 127 there is
no such command. Otherwise the command's own.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # importing `signal` takes a quarter of this program's time
import ctypes
import errno
import os
import resource
import stat
import sys
import time

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_OPENAT2, _CLOSE_RANGE = 437, 436
_RULE_PATH, _RULE_PORT = 1, 2
_RIGHT_ON_FILES = 0x1 | 0x2 | 0x4 | 1 << 14 | 1 << 15
_RIGHT_TO_CONNECT = 0x2
_RIGHT_TO_READ = 0x4 | 0x8
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2
_CAPABILITIES_VERSION, _DAC_OVERRIDE = 0x20080522, 1 << 1
_O_PATH, _NO_SYMLINKS = 0o10000000, 0x04
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
_IGNORED_BY_PYTHON = (13, 25)
"""SIGPIPE and SIGXFSZ, on all systems."""
_WAITED_FOR = (_signal.SIGTERM, _signal.SIGCHLD, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGHUP)
"""A terminal sends its signals to the command too, which handles them; the guard ends when the command does."""
_NEVER = float("inf")
_LONGEST_WAIT, _KILL_AGAIN_SECONDS = 3_600.0, 0.1
_KILL_SECONDS = 5.0
"""How long processes may take to end after SIGKILL."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scope", ctypes.c_uint64))


class _Path(ctypes.Structure):
    _fields_ = (("access", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Port(ctypes.Structure):
    _fields_ = (("access", ctypes.c_uint64), ("port", ctypes.c_uint64))


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


class _Whose(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def _call(number: int, *arguments: object) -> int:
    """A system call, raising `OSError` as those of `os` do."""
    result: int = _syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _open(path: str) -> int:
    how = _How(_O_PATH | os.O_CLOEXEC, 0, _NO_SYMLINKS)
    try:
        return _call(_OPENAT2, ctypes.c_int(-100), os.fsencode(path), ctypes.byref(how), ctypes.c_size_t(24))
    except OSError as error:
        if error.errno != errno.ENOSYS or os.path.realpath(path) != path:
            raise
        return os.open(path, _O_PATH | os.O_CLOEXEC)  # in another box, where there is no openat2


def _allow(ruleset: int, rule: str, handled: int) -> None:
    mask, _, path = rule.partition(":")
    try:
        parent = _open(path)
    except OSError:
        return
    access = int(mask, 16) & handled
    if not stat.S_ISDIR(os.fstat(parent).st_mode):
        access &= _RIGHT_ON_FILES
    if access:
        _call(_ADD_RULE, ctypes.c_int(ruleset), _RULE_PATH, ctypes.byref(_Path(access, parent)), 0)
    os.close(parent)


def _confine(orders: dict[str, list[str]]) -> None:
    """Permanently give up everything that `orders` do not allow, for this process and all it will start."""
    fs, net, scope = (int(orders.get(name, ["0"])[0], 16) for name in ("fs", "net", "scope"))
    attributes = _Ruleset(fs, net, scope)
    # Kernels before 6.7 and 6.12 know a shorter structure, and take a longer one if the rest is zero.
    ruleset = _call(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes)), 0)
    for rule in orders.get("allow", ()):
        _allow(ruleset, rule, fs)
    _allow(ruleset, f"{_RIGHT_TO_READ:x}:/proc/{os.getpid()}", fs)
    for port in orders.get("connect", ()) if net else ():
        _call(_ADD_RULE, ctypes.c_int(ruleset), _RULE_PORT, ctypes.byref(_Port(_RIGHT_TO_CONNECT, int(port))), 0)
    _prctl(_NO_NEW_PRIVS, 1)
    _call(_RESTRICT_SELF, ctypes.c_int(ruleset), 0)
    os.close(ruleset)
    _renounce()


def _renounce() -> None:
    """Drop root's capabilities, except to open files of other users that the box allows."""
    header = _Whose(_CAPABILITIES_VERSION, 0)
    powers = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; then the same for those above 31
    if _libc.capget(ctypes.byref(header), powers):
        raise OSError(ctypes.get_errno(), "capget")
    retained = powers[1] & _DAC_OVERRIDE
    if _libc.capset(ctypes.byref(header), (ctypes.c_uint32 * 6)(retained, retained, 0, 0, 0, 0)):
        raise OSError(ctypes.get_errno(), "capset")


def _install_filter(program: bytes) -> None:
    filter_program = _Filter(len(program) // 8, program)
    _prctl(_SET_SECCOMP, _FILTER, ctypes.addressof(filter_program))


def _prctl(option: int, *values: int) -> None:
    padded = (*values, 0, 0, 0, 0)[:4]
    if _libc.prctl(option, *(ctypes.c_ulong(value) for value in padded)):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _close_all() -> None:
    try:
        if sys.platform != "linux":
            raise OSError
        _call(_CLOSE_RANGE, ctypes.c_uint(3), ctypes.c_uint(0xFFFFFFFF), 0)
    except OSError:  # Linux before 5.9 has no such call
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def _limit(orders: dict[str, list[str]]) -> None:
    for order in orders.get("limit", ()):
        number, limit = (int(part) for part in order.split(":"))
        ceiling = resource.getrlimit(number)[1]
        limit = limit if ceiling == resource.RLIM_INFINITY else min(limit, ceiling)
        resource.setrlimit(number, (limit, limit))


def _guard(seconds: int) -> None:
    """Return in a child, which becomes the command. This process waits for it, and ends as it did.

    It is not in the box, so that the command cannot end it, and it adopts processes whose parents ended.
    """
    _prctl(_SET_CHILD_SUBREAPER, 1)
    _prctl(_SET_PARENT_DEATH_SIGNAL, _signal.SIGTERM)
    # Waited for instead of handled: Python runs no handler of a signal that comes just before a blocking call.
    mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _WAITED_FOR)
    command = os.fork()
    if command:
        status = _wait_for(command, seconds)
        _end_children()
        _end_as(status)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)


def _wait_for(command: int, seconds: int) -> int:
    """Wait for the command, and reap others meanwhile; after SIGTERM, end it."""
    kill_at = _NEVER
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == command:
            return status
        if pid:
            continue
        signal_info = _signal.sigtimedwait(_WAITED_FOR, max(0.0, min(kill_at - time.monotonic(), _LONGEST_WAIT)))
        if signal_info and signal_info.si_signo == _signal.SIGTERM:
            _kill(command, _signal.SIGTERM)
            kill_at = min(kill_at, time.monotonic() + seconds)
        if time.monotonic() >= kill_at:
            _kill_children()
            kill_at = time.monotonic() + _KILL_AGAIN_SECONDS


def _end_children() -> None:
    """Kill all children, and those that become children because their parents end."""
    deadline = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        _kill_children()
        time.sleep(0.002)
    _say(0, "What the command left running could not be ended.")


def _kill_children() -> None:
    own = os.getpid()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:  # it has ended
            continue
        if parent == own:
            _kill(int(name), _signal.SIGKILL)


def _kill(pid: int, number: int) -> None:
    try:  # noqa: SIM105 - importing contextlib takes time
        os.kill(pid, number)
    except ProcessLookupError:  # it has ended
        pass


def _end_as(status: int) -> None:
    """End with the exit code, or by the signal, of another process."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != _signal.SIGKILL:
            _signal.signal(number, _signal.SIG_DFL)
            _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


def _create_links(orders: dict[str, list[str]]) -> None:
    """Create the links that the environment names; after confinement, so that links of a worker lead nowhere."""
    for order in orders.get("link", ()):
        link, _, target = order.partition(":")
        try:
            os.makedirs(os.path.dirname(link), 0o700, exist_ok=True)
            os.symlink(target, link)
        except OSError:  # it is there already, or something of the worker's is
            continue


def _become(command: list[str]) -> int:
    for number in _IGNORED_BY_PYTHON:
        _libc.signal(number, None)
    try:
        os.execvp(command[0], command)
    except (FileNotFoundError, NotADirectoryError):
        return _say(127, f"{command[0]}: there is no such command, or none to interpret it.")
    except PermissionError as error:
        return _say(
            126,
            f"{command[0]}: {error.strerror}. If it lies outside of the system's directories and of this Python, "
            "add its directory to the setting confinement_read.",
        )
    except (OSError, ValueError) as error:
        return _say(126, f"{command[0]}: {error}.")


def _say(code: int, text: str) -> int:
    sys.stderr.write(f"{text}\n")
    return code


def main(arguments: list[str]) -> int:
    """Become the command, or return why not as an exit code."""
    end = arguments.index("--")
    orders: dict[str, list[str]] = {}
    for argument in arguments[:end]:
        name, _, value = argument.partition("=")
        orders.setdefault(name, []).append(value)
    try:
        for home in orders.get("home", ()):
            os.makedirs(home, 0o700, exist_ok=True)
        _close_all()
        for seconds in orders.get("guard", ()):
            _guard(int(seconds))
        _limit(orders)
        if "fs" in orders:
            _confine(orders)
        _create_links(orders)
        for program in orders.get("filter", ()):
            _install_filter(bytes.fromhex(program))
    except (OSError, ValueError) as error:
        return _say(125, f"The command could not be confined, so it was not run: {error}.")
    return _become(arguments[end + 1 :])


if __name__ == "__main__":
    _libc = ctypes.CDLL(None, use_errno=True)
    _syscall = _libc.syscall
    _syscall.restype = ctypes.c_long
    sys.exit(main(sys.argv[1:]))
