"""Starts boxed commands for one process: `python -I -S fork_server.py LAUNCHER NUMBER`; see `starter`.

It loads the launcher once and forks for each command, because starting Python takes longer than the rest. It runs
outside of all boxes, reads nothing that a worker can write, and keeps nothing of a command in memory: a fork takes it.

A message at the socket NUMBER brings four files: a socket for this command, and its standard files. By the former, the
command is confirmed (one byte), then the fork gets its directory, environment and arguments, and in the end its exit
code goes back (four bytes). A command whose socket is closed at the other end before is sent SIGTERM, with its group.
When the socket NUMBER is closed, this process ends, and so do all guards.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import marshal
import os
import select
import sys
import warnings  # noqa: F401 - `os.execvp` needs it for each command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

_SPACE_FOR_FILES = 64


def main(launcher: ModuleType, number: int) -> int:
    """Serve; return in each fork what the launcher does, and in this process nothing."""
    requests = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, number)
    commands: dict[int, tuple[int, int, int]] = {}
    events = select.poll()
    events.register(number, select.POLLIN)
    while True:
        event = events.poll()[0][0]  # one at a time: a number that is closed may be used again
        if event == number:
            files = _receive(requests)
            try:
                pid = os.fork()
            except OSError:  # too many processes; what is not confirmed is tried in another way
                _close(files)
                continue
            if not pid:
                return int(launcher.main(_take(files)))
            _close(files[1:])
            handle = os.pidfd_open(pid)
            commands[files[0]] = commands[handle] = pid, handle, files[0]
            events.register(handle, select.POLLIN)
            events.register(files[0], select.POLLRDHUP)
            _tell(files[0], b".")
            continue
        events.unregister(event)
        pid, handle, control = commands.pop(event)
        if event == control:
            _end(pid)
            continue
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if commands.pop(control, None):
            events.unregister(control)
        _tell(control, code.to_bytes(4, sys.byteorder, signed=True))
        _close([handle, control])


def _receive(requests: _socket.socket) -> list[int]:
    """The files of a request; ends this process if no more can come."""
    text, received, *_ = requests.recvmsg(1, _SPACE_FOR_FILES)
    if not text:
        os._exit(0)
    numbers = received[0][2]
    return [int.from_bytes(numbers[at : at + 4], sys.byteorder) for at in range(0, len(numbers), 4)]


def _take(files: list[int]) -> list[str]:
    """Be the process of a command: with its standard files, directory and environment. The launcher's arguments."""
    os.setsid()
    with open(files[0], "rb") as file:
        try:
            directory, environment, arguments = marshal.load(file)
        except EOFError:  # it was withdrawn
            os._exit(0)
    for standard, own in enumerate(files[1:]):
        os.dup2(own, standard)
    os.environ.clear()
    os.environ.update(environment)
    try:
        os.chdir(directory)
    except OSError as error:
        sys.exit(f"{directory}: {error.strerror}.")
    return list(arguments)


def _end(pid: int) -> None:
    """Send SIGTERM to a process, which may not have its group yet, and to its group."""
    for receiver in (pid, -pid):
        try:  # noqa: SIM105 - importing contextlib takes time
            os.kill(receiver, _signal.SIGTERM)
        except ProcessLookupError:
            pass


def _tell(control: int, text: bytes) -> None:
    try:  # noqa: SIM105
        os.write(control, text)
    except OSError:  # nobody waits for it any more
        pass


def _close(files: list[int]) -> None:
    for number in files:
        os.close(number)


def _load(path: str) -> ModuleType:
    """A program that may be bytecode, as a module."""
    with open(path, "rb") as file:
        text = file.read()
    module = type(sys)("launcher")
    exec(marshal.loads(text[16:]) if path.endswith(".pyc") else compile(text, path, "exec"), module.__dict__)
    return module


if __name__ == "__main__":
    sys.exit(main(_load(sys.argv[1]), int(sys.argv[2])))
