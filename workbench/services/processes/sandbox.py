"""Confinement of commands to their worktree: what this system enforces, and what commands may access."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from workbench.confinement import Box, Mount, abilities, box_for_worktree
from workbench.errors import Unavailable
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.state.home import expanded
from workbench.state.settings import Settings
from workbench.trust.withheld import untrusted_settings

_NOT_THERE = "which does not exist: workers get no access to it. Create it, and start them again."
_NO_PATH = "which is a pattern and no path: workers get no access by it. Name the directory."


class Confinement(Wire):
    """Whether commands run confined, and a description of each part that is not enforced."""

    enforced: bool
    missing: list[str]


class ConfinementSupport(Wire):
    """What this system can enforce, and what the settings ask for.

    `abi` is the version of Landlock; 0 if there is none. `unused` names paths of the settings that are not there.
    """

    mode: Literal["auto", "required", "off"]
    abi: int
    enforced: list[str]
    missing: list[str]
    summary: str
    unused: list[str]


@op(allow=Level.READ, reads=True, tool=False, command="doctor")
async def get_confinement(ctx: Ctx) -> ConfinementSupport:
    """Get how far commands are confined to their worktrees on this machine."""
    return confinement_support(ctx.settings)


def confinement_support(settings: Settings) -> ConfinementSupport:
    """What this system can enforce, and the mode that the settings choose."""
    able, mode = abilities(), settings.confinement
    off = "Workers are not confined: the setting confinement is off."
    return ConfinementSupport(
        mode=mode,
        abi=able.abi,
        enforced=list(able.enforced),
        missing=list(able.missing),
        summary=off if mode == "off" else able.summary,
        unused=unused_paths(settings),
    )


def unused_paths(settings: Settings) -> list[str]:
    """A sentence about each path in the settings that does not exist: workers get no access to it."""
    return [
        f"The setting {name} names {path}, {_NO_PATH if set('*?[') & set(path) else _NOT_THERE}"
        for name, paths in (
            ("confinement_read", settings.confinement_read),
            ("confinement_write", settings.confinement_write),
        )
        for path in paths.split(":")
        if path and not Path(path).expanduser().exists()
    ]


def confinement_of(settings: Settings) -> Confinement:
    """The confinement of a command that is started now.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``: the settings require more than this system enforces.
    """
    able = abilities()
    if settings.confinement == "off":
        return Confinement(enforced=False, missing=["disabled by the setting confinement"])
    if settings.confinement == "required" and not able.complete:
        raise Unavailable(
            "CONFINEMENT_UNAVAILABLE",
            f"{able.summary} The setting confinement=required needs all of it: use a newer Linux, or set it to auto.",
            missing=list(able.missing),
        )
    return Confinement(enforced=able.abi > 0, missing=list(able.missing))


def box(
    settings: Settings,
    *,
    worktree: Path,
    git_dir: Path,
    objects: Iterable[Path],
    scratch: Path,
    read: Iterable[Path] = (),
    write: Iterable[Path] = (),
    connect: Iterable[int] = (),
    project: Path | None = None,
    mounts: Iterable[Mount] = (),
) -> Box:
    """What a command in a worktree may access, including what the settings allow to all commands.

    Args:
        project: the top of the person's checkout, at whose path the worktree stands inside.
        mounts: what the worktree has besides its own files.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``. Conflict: ``MOUNT_POINT_TAKEN``.
    """
    return box_for_worktree(
        worktree=worktree,
        git_dir=git_dir,
        objects=objects,
        scratch=scratch,
        read=(*read, *_paths(settings.confinement_read)),
        write=(*write, *_paths(settings.confinement_write)),
        connect=(*connect, *(int(port) for port in settings.confinement_connect.split(",") if port.strip())),
        enforce=confinement_of(settings).enforced,
        untrusted=untrusted_settings(settings.project),
        project=project,
        mounts=mounts,
        namespaces=_namespaces(settings),
    )


def worktrees_stand(settings: Settings) -> bool:
    """Whether worktrees stand at the project's path in the boxes of their commands.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``.
    """
    return confinement_of(settings).enforced and bool(_namespaces(settings))


def _namespaces(settings: Settings) -> frozenset[str]:
    return abilities().namespaces if settings.confinement_namespaces == "auto" else frozenset()


def _paths(setting: str) -> tuple[Path, ...]:
    return tuple(expanded(path) for path in setting.split(":") if path)
