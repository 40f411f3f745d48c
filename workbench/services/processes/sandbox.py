"""Confinement of commands to their worktree: what this system enforces, and what commands may access."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from workbench.confinement import Box, abilities, box_for_worktree
from workbench.confinement.gpus import Gpu
from workbench.confinement.hidden import require_hidden
from workbench.errors import Unavailable
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.rules.hosts import HostRules
from workbench.rules.workplace import Workplace
from workbench.services.processes.workplaces import open_places
from workbench.state.home import expanded
from workbench.state.settings import Settings
from workbench.trust.withheld import untrusted_settings

_NOT_THERE = "which does not exist: workers get no access to it. Create it, and start them again."
_NO_PATH = "which is a pattern and no path: workers get no access by it. Name the directory."


class Confinement(Wire):
    """Whether commands run confined, and a description of each part that is not enforced."""

    enforced: bool
    missing: list[str]


ELSEWHERE = Confinement(enforced=True, missing=["What boxes lack on its machine is said in its log."])
"""A worker elsewhere does not start without a box, unless a person has decided that there."""


class ConfinementSupport(Wire):
    """What this system can enforce, and what the settings ask for.

    `abi` is the version of Landlock; 0 if there is none. `namespaces`: each command has files, memory and a network of
    its own. `unused` names paths of the settings that are not there.
    """

    mode: Literal["auto", "required", "off"]
    abi: int
    enforced: list[str]
    missing: list[str]
    summary: str
    namespaces: bool
    unused: list[str]


@op(allow=Level.READ, reads=True, tool=False, command="doctor")
async def get_confinement(ctx: Ctx) -> ConfinementSupport:
    """Get how far commands are confined to their worktrees on this machine."""
    return confinement_support(ctx.settings)


def confinement_support(settings: Settings) -> ConfinementSupport:
    """What this system can enforce, and the mode that the settings choose."""
    able, mode = abilities(), settings.confinement
    off = "Workers are not confined: the setting confinement is off."
    summary = " ".join(filter(None, (able.summary, _own_surroundings(settings))))
    return ConfinementSupport(
        mode=mode,
        abi=able.abi,
        enforced=list(able.enforced),
        missing=list(able.missing),
        summary=off if mode == "off" else summary,
        namespaces=mode != "off" and bool(namespaces_of(settings)),
        unused=unused_paths(settings),
    )


def _own_surroundings(settings: Settings) -> str:
    """A sentence about what a command has of its own; empty where nothing is confined."""
    if not abilities().abi:
        return ""
    if namespaces_of(settings):
        return (
            "Each command has files, shared memory and a network of its own: its worktree stands at the project's path."
        )
    off = settings.confinement_namespaces == "off"
    why = "the setting confinement_namespaces is off" if off else "this system lets its user make no namespaces"
    return f"Commands share the machine's shared memory and loopback, of which they may use nothing: {why}."


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
    private: Iterable[str] = (),
    forward: Iterable[int] = (),
    project: Path | None = None,
    workplace: Workplace = Workplace(),
    gpu: Gpu | None = None,
) -> Box:
    """What a command in a worktree may access, including what the settings allow to all commands.

    Args:
        private, forward: further hosts that are not public, and ports of this machine; see `HostRules`.
        project: the top of the person's checkout, at whose path the worktree stands inside.
        workplace: what else the commands find and reach.
        gpu: the one that they may use.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``, ``HIDE_UNAVAILABLE``. Conflict: ``MOUNT_POINT_TAKEN``.
        BadInput: ``BAD_HOST_PATTERN``. WorkbenchError: see `open_places`.
    """
    opened = open_places(settings, workplace, gpu)
    made = box_for_worktree(
        worktree=worktree,
        git_dir=git_dir,
        objects=objects,
        scratch=scratch,
        read=(*read, *opened.read, *_paths(settings.confinement_read)),
        write=(*write, *_paths(settings.confinement_write)),
        connect=(*connect, *(int(port) for port in settings.confinement_connect.split(",") if port.strip())),
        hosts=workplace.network,
        private=(*private, *workplace.private),
        forward=forward,
        connections=settings.confinement_connections,
        enforce=confinement_of(settings).enforced,
        untrusted=untrusted_settings(settings.project),
        project=project,
        mounts=opened.mounts,
        hide=opened.hide,
        shm_bytes=workplace.shm,
        devices=opened.devices,
        programs=opened.programs,
        variables=opened.variables or {},
        namespaces=namespaces_of(settings),
    )
    require_hidden(made)
    HostRules.parse(made.hosts, made.private)
    return made


def namespaces_of(settings: Settings) -> frozenset[str]:
    """The namespaces that a command which is started now has of its own."""
    return abilities().namespaces if settings.confinement_namespaces == "auto" else frozenset()


def has_own_files(settings: Settings) -> bool:
    """Whether a box has mounts of its own: a worktree stands at the project's path, and what is hidden is covered.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``.
    """
    return confinement_of(settings).enforced and bool(namespaces_of(settings))


def _paths(setting: str) -> tuple[Path, ...]:
    return tuple(expanded(path) for path in setting.split(":") if path)
