"""The paths and ports that a command may touch, as a value that can be sent with a worker's orders."""

from __future__ import annotations

import math
import resource
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from workbench.confinement import compiled, landlock, surroundings, syscalls
from workbench.confinement.abilities import abilities

GUARD_SECONDS = 3
"""How long a guarded command may take to end after SIGTERM; then it is killed, with all that it started."""


@dataclass(frozen=True, slots=True)
class BoxLimits:
    """What a worker may use; None is no limit.

    `cpu_seconds`, `memory_bytes` and `wall_seconds` count a command with all its descendants; `tasks` is how many a
    worker takes before it ends.
    """

    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    wall_seconds: float | None = None
    tasks: int | None = None

    def rlimits(self) -> dict[int, int]:
        """The backstop for each single process, as arguments of ``setrlimit``."""
        # Not RLIMIT_AS: node and others reserve far more addresses than they use.
        limits = {resource.RLIMIT_CORE: 0}
        if self.cpu_seconds is not None:
            limits[resource.RLIMIT_CPU] = max(1, math.ceil(self.cpu_seconds))
        if self.memory_bytes is not None:
            limits[resource.RLIMIT_DATA] = self.memory_bytes
        return limits


@dataclass(frozen=True, slots=True)
class Box:
    """Paths and ports that a command and all it starts may touch; everything else is refused.

    Paths in `read` can be read and executed, besides those of the system and of this Python; those in `write`, and
    `scratch`, can also be changed. A path that contains a symbolic link is ignored. `scratch` is HOME and TMPDIR.
    `connect` are TCP ports; none can be served. Without `enforce` the command runs unconfined, with the same
    environment. `untrusted` names settings of the project's file that are not trusted, so not used.
    """

    write: tuple[Path, ...]
    read: tuple[Path, ...]
    scratch: Path
    connect: tuple[int, ...] = ()
    enforce: bool = True
    untrusted: tuple[str, ...] = ()

    def argv(self, command: Sequence[str], limits: BoxLimits | None = None, *, guarded: bool = False) -> list[str]:
        """The command with the launcher in front of it, which passes on only the file descriptors 0 to 2.

        Exit statuses of the launcher: 125 the command could not be confined, and has not run; 126 it cannot be
        executed; 127 it does not exist.

        Args:
            guarded: no process that the command starts outlives it (Linux).
        """
        guard = [f"guard={GUARD_SECONDS}"] if guarded and sys.platform == "linux" else []
        return [
            sys.executable,
            "-I",
            "-S",
            str(compiled.launcher()),
            *guard,
            *self._orders(limits or BoxLimits()),
            "--",
            *command,
        ]

    def guarded(self, command: Sequence[str]) -> list[str]:
        """Like `argv`; no process that the command starts outlives it (Linux)."""
        return self.argv(command, guarded=True)

    def _orders(self, limits: BoxLimits) -> Iterator[str]:
        yield f"home={self.scratch}"
        yield from (f"limit={number}:{limit}" for number, limit in limits.rlimits().items())
        yield from (f"link={self._site / name}:{place}" for name, place in surroundings.package().items())
        if self.enforce:
            yield from self._confinement_orders()

    def _confinement_orders(self) -> Iterator[str]:
        fs, net, scope = landlock.handled(abilities().abi)
        yield from (f"fs={fs:x}", f"net={net:x}", f"scope={scope:x}")
        yield from (f"connect={port}" for port in self.connect)
        for access, paths in (
            (landlock.READ, self._readable_paths()),
            (landlock.WRITE, (*self.write, self.scratch)),
            (landlock.DEVICE, surroundings.DEVICES),
        ):
            yield from (f"allow={access:x}:{path}" for path in paths)
        if syscalls.available():
            yield f"filter={syscalls.program(names=bool(self.connect), setgid=self._has_shared_directory()).hex()}"

    def _has_shared_directory(self) -> bool:
        """Whether directories have the set-group-ID bit, which commands then copy with them, as in a shared project."""
        with suppress(OSError):
            return any(path.stat().st_mode & stat.S_ISGID for path in self.write)
        return False

    @property
    def devices(self) -> tuple[Path, ...]:
        """The devices that the command may use."""
        return surroundings.DEVICES

    def may_write(self, path: Path) -> bool:
        """Whether the command may change a path, which is absolute and has no symbolic link in it."""
        return any(path.is_relative_to(place) for place in (*self.write, self.scratch))

    def may_read(self, path: Path) -> bool:
        """Whether the command may read a path, which is absolute and has no symbolic link in it."""
        return self.may_write(path) or any(path.is_relative_to(place) for place in self._readable_paths())

    def _readable_paths(self) -> tuple[Path, ...]:
        return (*surroundings.shared((*self.write, self.scratch)), *self.read)

    @property
    def _site(self) -> Path:
        """The directory in which programs in the box find a Workbench that is not installed."""
        return self.scratch / ".workbench"

    def environment(self, base: Mapping[str, str], names: Collection[str] = surroundings.COMMAND) -> dict[str, str]:
        """The variables of `base` that are in `names` and hold no credentials, and the box's own.

        PATH begins with this Python's programs, and has only directories that the box may read. The author of commits
        is Workbench unless GIT_AUTHOR_NAME and the like are set.
        """
        readable = (*self._readable_paths(), *self.write, self.scratch) if self.enforce else None
        variables = {
            "HOME": str(self.scratch),
            "TMPDIR": str(self.scratch),
            "PATH": surroundings.search_path(base.get("PATH", ""), readable),
            "GIT_CEILING_DIRECTORIES": ":".join(str(place.parent) for place in self.write),
            "GIT_TERMINAL_PROMPT": "0",
        }
        if surroundings.package():
            variables["PYTHONPATH"] = str(self._site)
        if base_directory := surroundings.user_packages():
            variables["PYTHONUSERBASE"] = base_directory
        if sys.prefix != sys.base_prefix:
            variables["VIRTUAL_ENV"] = sys.prefix
        return surroundings.inherited(base, names) | variables | self._git_settings()

    def _git_settings(self) -> dict[str, str]:
        settings = [
            ("core.fsmonitor", "false"),
            ("core.hooksPath", "/dev/null"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("user.email", "workbench@localhost"),
            ("user.name", "Workbench"),
            *(("safe.directory", str(place)) for place in self.write),
        ]
        variables = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, (name, value) in enumerate(settings):
            variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return variables

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
        """The box that `as_json` wrote."""
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
    untrusted: Iterable[str] = (),
) -> Box:
    """A box that may write a worktree and its own repository, and read the object directories it borrows from.

    Symbolic links are resolved now and never again: a link that a worker puts in the place of a path opens nothing.
    """
    return Box(
        write=_resolve((worktree, git_dir, *write)),
        read=_resolve((*objects, *read)),
        scratch=scratch.resolve(),
        connect=tuple(connect),
        enforce=enforce,
        untrusted=tuple(untrusted),
    )


def _resolve(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path.resolve() for path in paths))
