"""Confines itself, then becomes a command: `python -I -S launcher.py ORDERS -- COMMAND…`; see also `fork_server`.

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
    link=NUMBER:PATH:TARGET       a symbolic link that is created at PATH (of so many characters) if that is missing,
                                  with its directory
    unshare=FLAGS                 new namespaces (hexadecimal); by a user namespace if the system asks for one. Then
                                  everything is read-only but what follows:
    shm=BYTES                     the size of a /dev/shm of its own
    mount=FLAGS:NUMBER:SOURCE:AT  what is at SOURCE (of so many characters) is at AT, too, from then on: writable (w),
                                  until all mounts are made (r), or not if that fails (o); in this order. A mount point
                                  that is missing is made
    hide=PATH                     is covered, if it is there
    threads=MASK                  rights on what the system tells of the command's own threads
    gate=NUMBER                   the open file by which a process outside gets listeners of this network: for names,
                                  and for each listen=PORT, which receives what is sent to that port of any address
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_OPENAT2, _CLOSE_RANGE = 437, 436
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_NEW_USER, _NEW_NETWORK = 0x1000_0000, 0x4000_0000
_RECURSIVE_SLAVE = 0x4000 | 1 << 19
_CLONE_TREE = 0x1 | 0o2000000 | 0x1000 | 0x8000
"""OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC, AT_EMPTY_PATH, AT_RECURSIVE."""
_BY_DESCRIPTORS = 0x4 | 0x40
_EMPTY_AND_BELOW = 0x1000 | 0x8000
_READ_ONLY, _NO_SETUID_OR_DEVICES = 0x1, 0x2 | 0x4
_SET_DUMPABLE = 4
_SIOCSIFFLAGS, _UP = 0x8914, 0x1
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
_NAMES_PORT, _BACKLOG, _HANDED_OVER = 53, 128, 250
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


class _Attributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user"))


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


def _leave(orders: dict[str, list[str]], flags: int) -> None:
    """Go into namespaces of its own, and have there what the orders say."""
    directory = os.getcwd()
    _unshare(flags)
    # First: else what root mounts from here on reaches the machine.
    _mount("none", "/", None, _RECURSIVE_SLAVE, None)
    if flags & _NEW_NETWORK:
        _bring_up_loopback()
    orders_of_mounts = [_parse_mount(order) for order in orders.get("mount", ())]
    # Taken before anything covers them, and those that may be written before all is read-only.
    trees = {order: _clone(order[1]) for order in orders_of_mounts if "w" in order[0]}
    root = os.open("/", _O_PATH | os.O_CLOEXEC)
    _make_read_only(root)
    trees |= {order: _clone(order[1]) for order in orders_of_mounts if "w" not in order[0]}
    for size in orders.get("shm", ()):
        _mount("tmpfs", "/dev/shm", "tmpfs", _NO_SETUID_OR_DEVICES, f"size={size},mode=1777")
    for order in orders_of_mounts:
        _attach(trees[order], *order)
    for hidden in orders.get("hide", ()):
        _hide(hidden)
    for mount_flags, _, at in orders_of_mounts:
        if "r" in mount_flags:
            _make_read_only(_open(at), 0x1000)
    os.chdir(_seen(directory, orders_of_mounts))


def _unshare(flags: int) -> None:
    if _libc.unshare(flags) == 0:
        return
    user, group = os.getuid(), os.getgid()
    if _libc.unshare(flags | _NEW_USER):
        raise OSError(ctypes.get_errno(), "no namespaces of its own")
    _prctl(_SET_DUMPABLE, 1)  # after a change of user, its own entry in /proc belongs to root
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _bring_up_loopback() -> None:
    request = b"lo".ljust(16, b"\0") + _UP.to_bytes(2, "little").ljust(24, b"\0")
    endpoint = _libc.socket(2, 2, 0)
    if endpoint < 0 or _libc.ioctl(endpoint, ctypes.c_ulong(_SIOCSIFFLAGS), request):
        raise OSError(ctypes.get_errno(), "loopback")
    os.close(endpoint)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    if _libc.mount(*words[:3], ctypes.c_ulong(flags), words[3]):
        raise OSError(ctypes.get_errno(), f"mounting {target}")


def _parse_mount(order: str) -> tuple[str, str, str]:
    flags, _, paths = order.partition(":")
    return flags, *_parse_pair(paths)


def _parse_pair(order: str) -> tuple[str, str]:
    length, _, pair = order.partition(":")
    return pair[: int(length)], pair[int(length) + 1 :]


def _clone(path: str) -> tuple[int, bool] | None:
    """A copy of the mounts at a path, and whether it is a directory; None if there is nothing, or a link on the way."""
    try:
        place = _open(path)
    except OSError:
        return None
    is_directory = stat.S_ISDIR(os.fstat(place).st_mode)
    tree = _call(_OPEN_TREE, ctypes.c_int(place), b"", ctypes.c_uint(_CLONE_TREE))
    os.close(place)
    return tree, is_directory


def _make_read_only(place: int, flags: int = _EMPTY_AND_BELOW) -> None:
    attributes = _Attributes(_READ_ONLY)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    _call(_MOUNT_SETATTR, ctypes.c_int(place), b"", ctypes.c_uint(flags), ctypes.byref(attributes), size)


def _attach(tree: tuple[int, bool] | None, flags: str, source: str, at: str) -> None:
    try:
        if tree is None:
            raise OSError(errno.ENOENT, f"{source} is not there")
        place = _mount_point(at, tree[1])
        _call(_MOVE_MOUNT, ctypes.c_int(tree[0]), b"", ctypes.c_int(place), b"", ctypes.c_uint(_BY_DESCRIPTORS))
        os.close(place)
        os.close(tree[0])
    except OSError as error:
        if "o" not in flags:
            raise OSError(error.errno, f"{at} cannot be mounted ({error.strerror})") from None


def _hide(path: str) -> None:
    try:
        place = _open(path)
    except OSError:
        return
    is_directory = stat.S_ISDIR(os.fstat(place).st_mode)
    os.close(place)
    if is_directory:
        _mount("tmpfs", path, "tmpfs", _NO_SETUID_OR_DEVICES | _READ_ONLY, "size=4k,mode=0")
    else:
        _mount("/dev/null", path, None, 0x1000, None)


def _mount_point(path: str, is_directory: bool) -> int:
    """A mount point, which is made if it is missing; never by way of a link."""
    try:
        return _open(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        _remove_own_link(path)
    _make(path, is_directory)
    return _open(path)


def _remove_own_link(path: str) -> None:
    """Remove a link that a box without mounts had in place of this mount: here it leads to itself."""
    directory, name = os.path.split(path)
    place = _open(directory)
    if os.readlink(name, dir_fd=place) != path:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    os.unlink(name, dir_fd=place)
    os.close(place)


def _make(path: str, is_directory: bool) -> None:
    place = os.open("/", _O_PATH | os.O_CLOEXEC)
    names = path.strip("/").split("/")
    for number, name in enumerate(names):
        try:
            if number < len(names) - 1 or is_directory:
                os.mkdir(name, 0o755, dir_fd=place)
            else:
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o444, dir_fd=place))
        except FileExistsError:
            pass
        below = os.open(name, _O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)


def _seen(directory: str, mounts: list[tuple[str, str, str]]) -> str:
    """The directory by the first mount that has it elsewhere."""
    for _, source, at in mounts:
        if directory == source or directory.startswith(f"{source}/"):
            return at + directory[len(source) :]
    return directory


def _confine(orders: dict[str, list[str]]) -> None:
    """Permanently give up everything that `orders` do not allow, for this process and all it will start."""
    fs, net, scope = (int(orders.get(name, ["0"])[0], 16) for name in ("fs", "net", "scope"))
    attributes = _Ruleset(fs, net, scope)
    # Kernels before 6.7 and 6.12 know a shorter structure, and take a longer one if the rest is zero.
    ruleset = _call(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes)), 0)
    for rule in orders.get("allow", ()):
        _allow(ruleset, rule, fs)
    _allow(ruleset, f"{_RIGHT_TO_READ:x}:/proc/{os.getpid()}", fs)
    for right in orders.get("threads", ()):
        _allow(ruleset, f"{right}:/proc/{os.getpid()}/task", fs)
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
    retained = 0 if os.getuid() else powers[1] & _DAC_OVERRIDE  # others have it in their own user namespace only
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


def _open_gate(orders: dict[str, list[str]]) -> None:
    """Lead what is sent to any address to listeners in this network, and hand those over."""
    for number in orders.get("gate", ()):
        # Not `socket`, whose import takes longer than all of this program.
        import _socket

        _route_here(_socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW, 0))
        listeners = _listen(_socket.SOCK_DGRAM, _NAMES_PORT)
        for port in orders.get("listen", ()):
            listeners += _listen(_socket.SOCK_STREAM, int(port))
        numbers = [listener.fileno().to_bytes(4, sys.byteorder) for listener in listeners]
        gate = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, int(number))
        for start in range(0, len(numbers), _HANDED_OVER):
            files = b"".join(numbers[start : start + _HANDED_OVER])
            gate.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
        gate.close()


def _route_here(netlink: Any) -> None:
    """Make all addresses local ones, of IPv4 and, if this system has it, of IPv6."""
    for family, missing in ((2, ()), (10, (errno.EAFNOSUPPORT, errno.EOPNOTSUPP, errno.ENODEV, errno.EACCES))):
        # To all addresses, in the table of local routes (255), set at start (3), on this host (254), local (2) …
        route = bytes((family, 0, 0, 0, 255, 3, 254, 2)) + bytes(4)
        # … by the interface 1, which is loopback. A new route (24) is asked for (1), made (0x400), and answered (4).
        parts = [(8, 2), (4, 2), (1, 4)]
        body = route + b"".join(value.to_bytes(size, sys.byteorder) for value, size in parts)
        head = [(16 + len(body), 4), (24, 2), (0x405, 2), (1, 4), (0, 4)]
        netlink.send(b"".join(value.to_bytes(size, sys.byteorder) for value, size in head) + body)
        code = -int.from_bytes(netlink.recv(4_096)[16:20], sys.byteorder, signed=True)
        if code and code not in missing:
            raise OSError(code, f"no route to loopback ({os.strerror(code)})")
    netlink.close()


def _listen(kind: int, port: int) -> list[Any]:
    """Listeners at a port of all addresses, of IPv4 and, if this system has it, of IPv6."""
    import _socket

    listeners = []
    for family, address in ((_socket.AF_INET, "0.0.0.0"), (_socket.AF_INET6, "::")):
        try:
            listener = _socket.socket(family, kind, 0)
            if family == _socket.AF_INET6:
                listener.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 1)
            listener.bind((address, port))
        except OSError:
            if family == _socket.AF_INET:
                raise
            continue
        if kind == _socket.SOCK_STREAM:
            listener.listen(_BACKLOG)
        listeners.append(listener)
    return listeners


def _close_all(*retained: str) -> None:
    """Close all files but the first three and those that are `retained`."""
    first = 3
    for last in (*sorted(int(number) for number in retained), 1 << 32):
        _close(first, last - 1)
        first = last + 1


def _close(first: int, last: int) -> None:
    if last < first:
        return
    try:
        if sys.platform != "linux":
            raise OSError
        _call(_CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(last), 0)
    except OSError:  # Linux before 5.9 has no such call
        os.closerange(first, min(last + 1, os.sysconf("SC_OPEN_MAX")))


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
        link, target = _parse_pair(order)
        try:
            os.makedirs(os.path.dirname(link), 0o700, exist_ok=True)
            _remove_mount_point(link)
            os.symlink(target, link)
        except OSError:  # it is there already, or something of the worker's is
            continue


def _remove_mount_point(path: str) -> None:
    """Remove what a box that had mounts left in their place: a file of `_make`, or directories without files."""
    if os.path.islink(path) or not os.path.lexists(path):
        return
    if not os.path.isdir(path):
        facts = os.stat(path)
        if facts.st_size == 0 and not facts.st_mode & 0o222:
            os.unlink(path)
        return
    trees = list(os.walk(path, topdown=False))
    if not any(files for _, _, files in trees):
        for directory, _, _ in trees:
            os.rmdir(directory)


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
        _close_all(*orders.get("gate", ()))
        for seconds in orders.get("guard", ()):
            _guard(int(seconds))
        _limit(orders)
        for flags in orders.get("unshare", ()):
            _leave(orders, int(flags, 16))
            _open_gate(orders)
        if "fs" in orders:
            _confine(orders)
        _create_links(orders)
        for program in orders.get("filter", ()):
            _install_filter(bytes.fromhex(program))
    except (OSError, ValueError) as error:
        return _say(125, f"The command could not be confined, so it was not run: {error}.")
    return _become(arguments[end + 1 :])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
