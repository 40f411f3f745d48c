"""What the project's own files take on the disk, and keeping that within `max_disk_bytes`.

Cleared is only what can be made again or is kept longer than it need be: what `worktrees prune` calls safe, then the
caches of commands in worktrees where none runs, the largest first. Never a person's work, nor the only copy of a
worker's.
"""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import WorkbenchError
from workbench.model import Level, Wire
from workbench.ops import SYSTEM, Command, Ctx, op
from workbench.ops.duties import duty
from workbench.services.tasks import attempts
from workbench.services.worktrees import cleanup
from workbench.services.worktrees.cleanup import size
from workbench.services.worktrees.kept_work import writer_lock
from workbench.state.settings import Settings
from workbench.store.own_server import OWN_SERVER
from workbench.system.tree_removal import remove_tree

log = logging.getLogger(__name__)

NEAR = 0.9
"""The part of the limit from which on `doctor` warns."""
CACHE = ".cache"
"""Where programs keep what they fetch or compute, below the home of a worktree's commands."""
TRANSCRIPTS = "agent_sessions"
"""The directory of what the programs of agents keep of their conversations."""
_ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")
_ENVIRONMENT_NAMES = frozenset(("node_modules", ".tox", ".nox", ".pixi"))
_NEVER = "never"


class DiskPart(Wire):
    """One part of what the project takes on the disk; `cleared` says when it is cleared if that is too much."""

    part: str
    bytes: int
    items: int
    cleared: str


class DiskUsage(Wire):
    """All parts, the largest first, their bytes in total, and the limit (`max_disk_bytes`, 0: none)."""

    parts: list[DiskPart]
    bytes: int
    limit: int

    @property
    def is_near_limit(self) -> bool:
        """Whether it is at the limit or close to it."""
        return 0 < self.limit * NEAR <= self.bytes


@op(allow=Level.READ, reads=True, tool=False, command=Command("disk"))
async def get_disk_usage(ctx: Ctx) -> DiskUsage:
    """Get what worktrees, environments, caches, logs, transcripts and kept work take on the disk."""
    kept = await ctx.read(lambda tx: attempts.all_kept(tx, ctx.local.machine.only))
    count = sum(row["bytes"] for row in kept)
    of_attempts = DiskPart(part="kept attempts", bytes=count, items=len(kept), cleared="after keep_attempts_days")
    return await to_thread(measure, ctx.settings, of_attempts)


def measure(settings: Settings, *others: DiskPart) -> DiskUsage:
    """What the state directory and worktrees outside of it take. Blocks while it looks at every file."""
    parts = [part for part in (*_parts(settings), *others) if part.items]
    parts.sort(key=lambda part: -part.bytes)
    return DiskUsage(parts=parts, bytes=sum(part.bytes for part in parts), limit=settings.max_disk_bytes)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Files that are one part, of which `within` are others."""

    part: str
    paths: list[Path]
    cleared: str
    within: tuple[Path, ...] = ()

    def measure(self) -> DiskPart:
        total = sum(map(size, self.paths)) - sum(map(size, self.within))
        return DiskPart(part=self.part, bytes=max(total, 0), items=len(self.paths), cleared=self.cleared)


def _parts(settings: Settings) -> Iterator[DiskPart]:
    home = settings.home
    worktrees = [settings.worktree(path.name) for path in _entries(settings.worktrees)]
    environments = [place for worktree in worktrees for place in _environments(worktree)]
    caches = _caches(settings)
    database = [*sorted(home.glob(f"{settings.database.name}*")), *home.glob(OWN_SERVER)]
    transcripts = _entries(home / TRANSCRIPTS)
    logs, tool_logs = _entries(settings.logs), _entries(settings.tool_logs)
    named = [
        _Kind("worktrees", worktrees, _NEVER, tuple(environments)),
        _Kind("environments in worktrees", environments, "with their worktree"),
        _Kind("repositories of worktrees", _entries(settings.repositories), "with their worktree"),
        _Kind("bundles of worktrees", _entries(settings.bundles), "with their worktree"),
        _Kind("artifacts from other machines", _entries(settings.artifacts), "if another attempt completes the task"),
        _Kind("temporary files", _entries(settings.scratch), "second: of closed worktrees", tuple(caches)),
        _Kind("caches of commands", caches, "last: where no command runs"),
        _Kind("gates", [*_entries(settings.gates), *_entries(settings.outer_gates)], "first: what ended gates left"),
        _Kind("checkouts", _entries(settings.checkouts), "first: those that no attempt uses"),
        _Kind("logs", [path for path in logs if path != settings.tool_logs], _NEVER),
        _Kind("logs of tools", tool_logs, "after keep_tool_logs_days"),
        _Kind("transcripts", transcripts, "when their tasks end"),
        _Kind("runs", _entries(settings.runs), _NEVER),
        _Kind("discarded work", _entries(settings.trash), _NEVER),
        _Kind("store", database, _NEVER),
    ]
    yield from (kind.measure() for kind in named)
    seen = {path for kind in named for path in kind.paths}
    others = [path for path in _entries(home) if path not in seen and not any(path in one.parents for one in seen)]
    yield _Kind("other", others, _NEVER).measure()


def _environments(worktree: Path) -> Iterator[Path]:
    """The environments directly in a worktree, or in a directory of it."""
    for place in filter(_is_directory, _entries(worktree)):
        if _is_environment(place):
            yield place
        else:
            yield from (below for below in _entries(place) if _is_directory(below) and _is_environment(below))


def _is_environment(place: Path) -> bool:
    return place.name in _ENVIRONMENT_NAMES or any((place / mark).exists() for mark in _ENVIRONMENT_MARKS)


def _caches(settings: Settings) -> list[Path]:
    places = (path / CACHE for path in _entries(settings.scratch) if _is_directory(path))
    return [place for place in places if _is_directory(place)]


def _is_directory(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir() and not path.is_symlink()
    return False


def _entries(directory: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(directory.iterdir())
    return []


@duty("keeping within max_disk_bytes", 600.0, share=0.05)
async def keep_within_limit(ctx: Ctx) -> None:
    """Clear what can be made again, if the project takes more than the limit."""
    if not ctx.settings.max_disk_bytes or not (excess := await _excess(ctx)):
        return
    with suppress(WorkbenchError):  # the project has no repository, or it is busy: the next time
        await cleanup.prune_worktrees(ctx.of(SYSTEM), apply=True)
        excess = await _excess(ctx)
    if excess > 0:
        excess -= await to_thread(_clear_caches, ctx.settings, excess)
    if excess > 0:
        log.warning("The project takes %d bytes more than max_disk_bytes. `workbench disk` shows what.", excess)


async def _excess(ctx: Ctx) -> int:
    usage = await get_disk_usage(ctx.of(SYSTEM))
    return max(usage.bytes - usage.limit, 0)


def _clear_caches(settings: Settings, excess: int) -> int:
    """Remove caches, the largest first, until enough bytes are freed; how many were."""
    freed = 0
    for bytes_, place in sorted(((size(place), place) for place in _caches(settings)), reverse=True):
        if freed >= excess:
            break
        with writer_lock(settings, place.parent.name).held() as is_idle:
            if is_idle and remove_tree(place):
                freed += bytes_
    return freed
