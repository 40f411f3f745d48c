"""What a command may touch, as a value that can be sent along with a worker's orders."""

from __future__ import annotations

import json
import math
import os
import re
import resource
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).parent

_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"),
    *("/etc/alternatives", "/etc/fonts", "/etc/group", "/etc/gitconfig", "/etc/hosts", "/etc/ld.so.cache"),
    *("/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf"),
    *("/etc/os-release", "/etc/passwd", "/etc/pki/tls/certs", "/etc/protocols", "/etc/resolv.conf", "/etc/services"),
    *("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone"),
    *("/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat", "/proc/uptime"),
    *("/proc/version", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/random", "/proc/sys/vm/overcommit_memory"),
    "/sys/devices/system/cpu",
)
"""What programs read of the system. Not the rest of /etc, /proc and /sys, and nobody's home."""

_DEVICES = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")

_STEERING = ("GIT_", "LD_", "PYTHON", "WORKBENCH_", "XDG_", "DYLD_")
_SECRET = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE|COOKIE|API_?KEY|_KEY\Z|_PAT\Z|_DSN\Z|\A(SSH|GPG|AWS|AZURE|GOOGLE|DBUS|KUBE)|"
    r"\A(DATABASE_URL|NETRC|XAUTHORITY|DISPLAY|WAYLAND_DISPLAY|BASH_ENV|ENV|NODE_OPTIONS|PERL5LIB|RUBYOPT)\Z",
    re.IGNORECASE,
)
_GIT = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "gc.auto": "0",
    "maintenance.auto": "false",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a worker may use; None is no limit.

    `cpu_seconds`, `memory_bytes` and `wall_seconds` are those of a command with all it starts;
    `tasks` is how many a worker takes before it ends.
    """

    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    wall_seconds: float | None = None
    tasks: int | None = None

    def rlimits(self) -> dict[int, int]:
        """The backstop for each single process, as arguments of ``setrlimit``."""
        # Not RLIMIT_AS: node and others reserve far more addresses than they use.
        found = {resource.RLIMIT_CORE: 0}
        if self.cpu_seconds is not None:
            found[resource.RLIMIT_CPU] = math.ceil(self.cpu_seconds)
        if self.memory_bytes is not None:
            found[resource.RLIMIT_DATA] = self.memory_bytes
        return found


@dataclass(frozen=True, slots=True)
class Box:
    """Paths and ports that a command and all it starts may touch; everything else is refused.

    Paths in `read` can be read and executed; those in `write`, and `scratch`, also changed.
    `scratch` is HOME and TMPDIR. `connect` are TCP ports; nothing can be bound. Without `enforce`
    the command runs unconfined, in the same surroundings.
    """

    write: tuple[Path, ...]
    read: tuple[Path, ...]
    scratch: Path
    connect: tuple[int, ...] = ()
    enforce: bool = True

    def argv(self, command: Sequence[str], limits: Limits | None = None) -> list[str]:
        """The command with the launcher in front of it."""
        rules = {
            "read": [*_SYSTEM, *map(str, [*_interpreter(), *self.read])],
            "write": [*_DEVICES, *map(str, [*self.write, self.scratch])],
            "connect": list(self.connect),
            "enforce": self.enforce,
            "packages": _packages(),
            "rlimits": (limits or Limits()).rlimits(),
        }
        return [sys.executable, "-I", "-S", str(HERE / "launch.py"), json.dumps(rules), *command]

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Of the variables in `base` those that neither steer programs nor betray secrets, and the box's own."""
        kept = {name: value for name, value in base.items() if not (name.startswith(_STEERING) or _SECRET.search(name))}
        path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
        settings = {**_GIT, "safe.directory": "*"}
        git = {"GIT_CONFIG_COUNT": str(len(settings)), "GIT_TERMINAL_PROMPT": "0"}
        for number, (key, value) in enumerate(settings.items()):
            git |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return kept | {"PATH": path, "HOME": str(self.scratch), "TMPDIR": str(self.scratch)} | git

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` reads it."""
        return asdict(self) | {
            "write": list(map(str, self.write)),
            "read": list(map(str, self.read)),
            "scratch": str(self.scratch),
            "connect": list(self.connect),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `as_json` wrote."""
        return cls(
            write=tuple(map(Path, data["write"])),
            read=tuple(map(Path, data["read"])),
            scratch=Path(data["scratch"]),
            connect=tuple(data["connect"]),
            enforce=data["enforce"],
        )


def box_for_worktree(
    *,
    worktree: Path,
    git_dir: Path,
    objects: Iterable[Path],
    scratch: Path,
    read: Iterable[Path] = (),
    write: Iterable[Path] = (),
    connect: Iterable[int] = (),
    enforce: bool = True,
) -> Box:
    """A worktree and its own repository to work in, and the object directories that it borrows from to read."""
    return Box(
        write=(worktree, git_dir, *write),
        read=(*objects, *read),
        scratch=scratch,
        connect=tuple(connect),
        enforce=enforce,
    )


@cache
def _interpreter() -> tuple[Path, ...]:
    """The running Python with its packages, and what of Workbench runs in a box."""
    return tuple({Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)} | {HERE, HERE.parent / "worker"})


@cache
def _packages() -> str:
    spec = find_spec("py_landlock")
    return str(Path(spec.origin).parents[1]) if spec and spec.origin else ""
