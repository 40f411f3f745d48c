"""`python -m workbench.worker.over_ssh`: a worker of another machine, as a process of this one that is ssh's parent.

It reads what to start from its standard input, gives the worker there its token, and repeats what is said there. The
worker there ends when its input ends. SIGTERM here ends that input, and leaves the way open for what the worker sends
meanwhile; if this process is killed, the system ends it.
"""

from __future__ import annotations

import json
import secrets
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Event
from types import FrameType
from typing import IO, ClassVar

from workbench.rules import remote_worker

PORTS = range(20_000, 32_000)
"""Where the server is reached there: below those that systems give to connections."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)
OF_SSH = 255
"""The exit status of ssh when it has failed itself."""
NOT_FOUND = (126, 127)
"""Those of a shell that cannot execute a command."""


@dataclass(frozen=True, slots=True)
class SshStart:
    """What to start.

    Args:
        server: the server's host and port, as this machine reaches it.
        token: the worker's.
        command: what the shell there calls Workbench.
        limits: options of `workbench worker`.
        told: where it writes, when it ends, a sentence with a code if something failed.
    """

    MODULE: ClassVar = "workbench.worker.over_ssh"

    machine: str
    host: str
    command: str
    options: Sequence[str]
    server: str
    token: str = field(repr=False)
    directory: str
    limits: Mapping[str, float]
    told: str

    def as_json(self) -> str:
        """The text for its standard input."""
        return json.dumps(asdict(self))

    def argv(self, port: int) -> list[str]:
        """The command line of ssh; nothing in it is secret."""
        there = remote_worker.arguments(f"http://127.0.0.1:{port}", self.directory, self.limits)
        return [
            *("ssh", "-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes"),
            *("-o", "ControlPath=none", *self.options, "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=15"),
            *("-R", f"127.0.0.1:{port}:{self.server}", "--", self.host, f"{self.command} {shlex.join(there)}"),
        ]

    def explain(self, status: int, last: str) -> str | None:
        """A sentence with a code about an end; None if nothing failed.

        Args:
            last: the last line that was said.
        """
        said = remote_worker.said(last)
        if status == 0:
            return None
        if status in NOT_FOUND:
            text = f"Install workbench-agents there, or name its command in [machines.{self.machine}], and restart it."
            return f"WORKBENCH_NOT_THERE: {self.command} cannot be run on {self.machine}: {said} {text}"
        if status == OF_SSH or status < 0:
            text = f"`ssh -o BatchMode=yes {self.host} {self.command} --version` has to work, and a port has to be"
            return f"SSH_FAILED: ssh to {self.machine} ended: {said} {text} forwarded (-R); then restart it."
        return remote_worker.failed(self.machine, status, last)


def main(start: SshStart) -> int:
    """Start ssh and wait for its end; its exit status."""
    argv, ended = start.argv(secrets.choice(PORTS)), Event()
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # ssh inherits that: what is sent last needs its way until all is over
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as child:
        stdin, stdout = child.stdin, child.stdout
        assert stdin is not None
        assert stdout is not None

        def end_input(number: int, frame: FrameType | None) -> None:
            ended.set()
            _close(stdin)

        for number in SIGNALS:
            signal.signal(number, end_input)
        _give(stdin, start.token)
        last = ""
        for line in _lines(stdout):
            sys.stdout.write(line)
            sys.stdout.flush()
            last = line.strip() or last
    if (sentence := start.explain(child.returncode, last)) and not ended.is_set():
        Path(start.told).write_text(sentence, "utf-8")
    return child.returncode


def _give(stdin: IO[bytes], token: str) -> None:
    try:
        stdin.write(f"{token}\n".encode())
        stdin.flush()
    except (BrokenPipeError, ValueError):  # ssh has ended, or is to end
        return


def _close(stdin: IO[bytes]) -> None:
    try:
        stdin.close()
    except BrokenPipeError:  # ssh ended before it read the token
        return


def _lines(stdout: IO[bytes]) -> Iterator[str]:
    for line in stdout:
        yield line.decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main(SshStart(**json.loads(sys.stdin.read()))))
