"""A box: what a command may touch, and how it is started so that the kernel sees to it."""

from __future__ import annotations

import math
import resource
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workbench.confinement import landlock, surroundings
from workbench.confinement.landlock import Abilities, abilities
from workbench.errors import Unavailable
from workbench.settings import Settings

LAUNCHER = Path(__file__).resolve().with_name("launcher.py")

_CPU_GRACE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a command may use; None: no limit. Sizes in bytes.

    The launcher sets `cpu_seconds` and `memory_bytes` as resource limits of each single process: a backstop for whoever
    watches the whole family, who alone sees to `wall_seconds` and `tasks` (how many tasks a worker takes).
    """

    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    wall_seconds: float | None = None
    tasks: int | None = None

    def resources(self) -> Iterable[tuple[int, int, int]]:
        """Resource, soft and hard limit. Memory is counted as data: node reserves far more addresses than it uses."""
        yield resource.RLIMIT_CORE, 0, 0
        if self.cpu_seconds is not None:
            seconds = max(1, math.ceil(self.cpu_seconds))
            yield resource.RLIMIT_CPU, seconds, seconds + _CPU_GRACE_SECONDS
        if self.memory_bytes is not None:
            yield resource.RLIMIT_DATA, self.memory_bytes, self.memory_bytes


@dataclass(frozen=True, slots=True)
class Box:
    """What a command may touch. All paths are absolute and resolved.

    `write` may be read, written and executed; `read` read and executed; nothing else of the file system can be opened.
    `scratch` is HOME, and `tmp` in it TMPDIR; always writable. `connect` are the TCP ports it may connect to; none
    is served. Where `enforce` is false the command gets the same environment and limits, and no walls.
    """

    write: tuple[Path, ...]
    read: tuple[Path, ...]
    scratch: Path
    connect: tuple[int, ...] = ()
    enforce: bool = True

    def argv(self, command: Sequence[str], limits: Limits | None = None) -> list[str]:
        """`command` with the launcher in front, which confines itself and becomes it.

        It keeps only the file descriptors 0 to 2. Exit codes of the launcher: 125 it could not confine itself (the
        command never ran), 126 the command cannot be executed, 127 there is no such command.
        """
        return [sys.executable, "-I", "-S", str(LAUNCHER), *self._orders(limits or Limits()), "--", *command]

    def _orders(self, limits: Limits) -> Iterable[str]:
        yield f"home={self.scratch}"
        yield from (f"limit={which}:{soft}:{hard}" for which, soft, hard in limits.resources())
        if self.enforce:
            yield from (f"link={name}:{place}" for name, place in self._package().items())
            yield from self._walls()

    def _walls(self) -> Iterable[str]:
        fs, net, scope = landlock.handled(abilities().abi)
        yield from (f"fs={fs:x}", f"net={net:x}", f"scope={scope:x}")
        yield from (f"connect={port}" for port in self.connect)
        for access, paths in (
            (landlock.READ, self.read),
            (landlock.WRITE, (*self.write, self.scratch)),
            (landlock.DEVICE, surroundings.DEVICES),
            (landlock.TERMINAL, (surroundings.TERMINAL,)),
        ):
            yield from (f"allow={access & landlock.ALL_FS:x}:{path}" for path in paths)

    def _package(self) -> dict[str, Path]:
        return surroundings.package() if surroundings.PACKAGE in self.read else {}

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """The whole environment of a command in the box: `base` without what steers programs or betrays secrets, with
        HOME, TMPDIR, PATH (the interpreter's programs first, then what the box may read), and git's settings."""
        inside = (*self.read, *self.write, self.scratch) if self.enforce else None
        made = surroundings.cleaned(base) | {
            "HOME": str(self.scratch),
            "TMPDIR": str(self.scratch / "tmp"),
            "PATH": surroundings.search_path(base.get("PATH", ""), inside),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CEILING_DIRECTORIES": ":".join(str(place.parent) for place in self.write),
            **self._git_settings(),
        }
        if self.enforce and self._package():
            made["PYTHONPATH"] = str(self.scratch / "site")
        if sys.prefix != sys.base_prefix:
            made["VIRTUAL_ENV"] = sys.prefix
        return made

    def _git_settings(self) -> dict[str, str]:
        settings = [
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("user.name", "Workbench"),
            ("user.email", "workbench@localhost"),
            *(("safe.directory", str(place)) for place in self.write),
        ]
        made = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, (name, value) in enumerate(settings):
            made |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return made

    def as_json(self) -> dict[str, Any]:
        """Itself as JSON can carry it."""
        paths = {"write": [*map(str, self.write)], "read": [*map(str, self.read)], "scratch": str(self.scratch)}
        return asdict(self) | paths | {"connect": list(self.connect)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Box:
        """What `as_json` gave."""
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
    objects: Sequence[Path],
    scratch: Path,
    read: Sequence[Path] = (),
    write: Sequence[Path] = (),
    connect: Sequence[int] = (),
    enforce: bool = True,
) -> Box:
    """The box of whoever works in `worktree` with its own repository `git_dir`, which borrows from `objects`.

    It may read the system's directories, the running interpreter and `objects`, and write the worktree, its repository
    and `scratch`; besides, `read`, `write` and `connect`. Paths are resolved; those that do not exist are passed over.
    """
    own = (worktree.resolve(), git_dir.resolve())
    private = (*own, *(place.resolve() for place in objects), scratch.resolve())
    around = [*surroundings.system(), *surroundings.interpreter(private), *surroundings.package().values()]
    return Box(
        write=(*own, *surroundings.outermost(write)),
        read=surroundings.outermost([*around, *objects, *read]),
        scratch=scratch.resolve(),
        connect=tuple(connect),
        enforce=enforce,
    )


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the settings say about boxes: arguments of `box_for_worktree`."""

    read: tuple[Path, ...]
    write: tuple[Path, ...]
    connect: tuple[int, ...]
    enforce: bool

    @classmethod
    def of(cls, settings: Settings) -> Chosen:
        """Those of a project.

        Raises:
            Unavailable: ``CONFINEMENT_UNAVAILABLE``, see `decide`.
        """
        return cls(
            read=_paths(settings.confinement_read),
            write=_paths(settings.confinement_write),
            connect=tuple(int(port) for port in settings.confinement_connect.split(",") if port.strip()),
            enforce=decide(settings.confinement),
        )


def decide(mode: str, found: Abilities | None = None) -> bool:
    """Whether boxes are enforced: with ``auto`` as far as this system can, with ``off`` never.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``: the mode is ``required``, and something is missing.
    """
    found = found or abilities()
    if mode == "required" and not found.all:
        raise Unavailable(
            "CONFINEMENT_UNAVAILABLE",
            f"{found.summary} {' '.join(found.missing)} Use a newer Linux, or set confinement to auto to do with less.",
            missing=list(found.missing),
        )
    return mode != "off" and found.any


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(Path(part).expanduser() for part in text.split(":") if part)
