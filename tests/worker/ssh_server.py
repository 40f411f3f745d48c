"""An OpenSSH server of the tests' own, on a port of the loopback, in which their user is let in by a key."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SERVER = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
"""The program, which wants to be called by its whole path."""


@dataclass(frozen=True)
class SshServer:
    """A machine that is reached by ssh. `home`: where its commands begin; `config`: of the client."""

    home: Path
    config: Path
    port: int

    @property
    def command(self) -> str:
        """Workbench there."""
        return f"cd {self.home} && HOME={self.home} PYTHONPATH={ROOT} exec {sys.executable} -P -m workbench.cli"

    def machine(self, *, options: Sequence[str] = (), **more: str) -> dict[str, Any]:
        """Its entry in the setting `machines`."""
        described = {"kind": "ssh", "host": "there", "command": self.command}
        return {**described, **more, "options": ["-F", str(self.config), *options]}


@contextmanager
def ssh_server(place: Path) -> Iterator[SshServer]:
    """A server whose files are in a directory."""
    if SERVER is None or shutil.which("ssh") is None:
        pytest.skip("OpenSSH's server and client are not installed")
    for name in ("host", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)], check=True)
    (place / "authorized_keys").write_bytes((place / "key.pub").read_bytes())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lines = [
        f"HostKey {place}/host",
        f"AuthorizedKeysFile {place}/authorized_keys",
        f"PidFile {place}/pid",
        *("StrictModes no", "PermitRootLogin yes", "PasswordAuthentication no", "UsePAM no"),
    ]
    (place / "sshd_config").write_text("\n".join([f"ListenAddress 127.0.0.1:{port}", *lines, ""]))
    known = f"[127.0.0.1]:{port} {(place / 'host.pub').read_text()}"
    (place / "known_hosts").write_text(known)
    client = [
        f"HostName 127.0.0.1\nPort {port}\nUser {getpass.getuser()}\nIdentityFile {place}/key\nIdentitiesOnly yes"
    ]
    client += [f"UserKnownHostsFile {place}/known_hosts\nGlobalKnownHostsFile /dev/null\nIdentityAgent none"]
    (place / "config").write_text("\n".join(["Host there", *client, ""]))
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where it locks itself up
    (place / "home").mkdir()
    with (place / "sshd.log").open("ab") as log:
        argv = [SERVER, "-D", "-e", "-f", str(place / "sshd_config")]
        server = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait_for_port(port, server)
        yield SshServer(place / "home", place / "config", port)
    finally:
        server.terminate()
        server.wait()
        sys.stdout.write((place / "sshd.log").read_text())  # shown if the test fails


def _wait_for_port(port: int, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError("the SSH server has ended")
