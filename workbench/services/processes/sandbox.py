"""Confinement of commands to their worktree: what this system enforces, and what commands may access."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from workbench.confinement import Box, abilities, box_for_worktree
from workbench.confinement.gpus import Gpu
from workbench.errors import Unavailable
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
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
    network: Iterable[str] = (),
    private: Iterable[str] = (),
    forward: Iterable[int] = (),
    project: Path | None = None,
    workplace: Workplace = Workplace(),
    gpu: Gpu | None = None,
) -> Box:
    """What a command in a worktree may access, including what the settings allow to all commands.

    Args:
        network, private: hosts, see `HostRules`.
        forward: ports of this machine.
        project: the top of the person's checkout, at whose path the worktree stands inside.
        workplace: what else the commands find and reach.
        gpu: the one that they may use.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``, ``HIDE_UNAVAILABLE``. Conflict: ``MOUNT_POINT_TAKEN``.
        WorkbenchError: see `open_places`.
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
        hosts=network,
        private=private,
        forward=forward,
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
    _require_hidden(made)
    return made


def namespaces_of(settings: Settings) -> frozenset[str]:
    """The namespaces that a command which is started now has of its own."""
    return abilities().namespaces if settings.confinement_namespaces == "auto" else frozenset()


def may_hide(settings: Settings) -> bool:
    """Whether a box can cover a path below one that is open."""
    return confinement_of(settings).enforced and bool(namespaces_of(settings))


def _require_hidden(box: Box) -> None:
    """Refuse to hide what cannot be hidden: without mounts, a path is closed only if nothing around it is open."""
    if box.enforce and box.namespaces:
        return
    bare = replace(box, hide=())
    for path in box.hide:
        is_open = not box.enforce or bare.may_read(path) or any(one.is_relative_to(path) for one in box.read)
        if is_open and path.exists():
            raise Unavailable(
                "HIDE_UNAVAILABLE",
                f"{path} cannot be hidden: something around or below it is open, and this system, or the settings, "
                "allow no mounts in a box (`workbench doctor`). Open less in read, or leave it out of hide.",
                path=str(path),
            )


def _paths(setting: str) -> tuple[Path, ...]:
    return tuple(expanded(path) for path in setting.split(":") if path)
