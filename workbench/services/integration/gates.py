"""Gates: commands that must pass on the result of a merge before the target moves to it (spec 3, integration).

They run code that workers wrote, so they run in a box, in a temporary worktree of the result, with a time limit each.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.confinement import Box, BoxLimits
from workbench.confinement.editable import own_path, preceded
from workbench.confinement.gate import Gate
from workbench.confinement.refusals import explanation
from workbench.errors import Unavailable
from workbench.ops import Ctx
from workbench.process import ProcessRef
from workbench.rules.hosts import HostRefusal
from workbench.rules.integration import GateState
from workbench.services.access import secret_marks
from workbench.services.processes.workplaces import of_settings, secrets_of
from workbench.services.worktrees.places import (
    WorktreeLocation,
    add_files,
    box_of,
    find_included,
    included_secrets,
    paths_of_gates,
)
from workbench.system import atomic_file
from workbench.system.tree_removal import remove_tree

TAIL_BYTES = 16_384
"""How much of the end of a gate's output is kept."""
MAX_OUTPUT_BYTES = 64 << 20
"""A gate that writes more is stopped."""
_COLOURS = ("CLICOLOR_FORCE", "FORCE_COLOR", "PY_COLORS")
POLL_SECONDS = 0.05
REPORT_SECONDS = 1.0
"""How often a running gate is checked, and its output reported."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GateResult:
    """A command and its result so far; `output` is the end of what it wrote."""

    command: str
    state: GateState = GateState.WAITING
    exit_code: int | None = None
    seconds: float = 0.0
    output: str = ""

    def as_json(self) -> dict[str, Any]:
        """As the approval shows it."""
        return {
            "command": self.command,
            "state": str(self.state),
            "exit_code": self.exit_code,
            "seconds": round(self.seconds, 1),
            "output": self.output,
        }


@dataclass(frozen=True, slots=True)
class _Room:
    """Where the gates of an integration run: a temporary worktree, the box of their commands, and their variables."""

    place: WorktreeLocation
    box: Box
    environment: Mapping[str, str]


Report = Callable[[Sequence[GateResult]], Awaitable[bool]]
"""Called with the states of the gates; returns False to cancel the run."""


async def run(
    ctx: Ctx, approval_id: int, commit: str, commands: Sequence[str], report: Report
) -> list[GateResult] | None:
    """Run all commands on a commit, one after another; return their results, or None if the run was cancelled.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``, ``GIT_BUSY``, ``WORKTREE_PATH_UNUSABLE``, ….
        Conflict: ``EDITABLE_ENVIRONMENT``.
    """
    try:
        room = await ctx.repositories.shielded(_make(ctx, approval_id, commit))
        return await _run_all(ctx, room, [GateResult(command) for command in commands], report)
    finally:
        await ctx.repositories.shielded(remove(ctx, approval_id))


async def _make(ctx: Ctx, approval_id: int, commit: str) -> _Room:
    place = WorktreeLocation.of_gates(ctx.settings, approval_id)
    async with ctx.repositories.exclusive() as repository:
        await _clear(ctx, approval_id)
        files = await to_thread(find_included, ctx.settings, repository, of_settings(ctx.settings))
        await to_thread(add_files, ctx.settings, repository, place, None, commit, include=files)
        box = await to_thread(box_of, ctx.settings, repository, place)
    included = await to_thread(included_secrets, ctx.settings, files)
    await secret_marks.learn(ctx, [*included, *secrets_of(of_settings(ctx.settings), dict(box.variables))])
    environment = _environment(box)
    path = await to_thread(own_path, box, ctx.settings.project, place.path, environment)
    return _Room(place, box, preceded(environment, path))


async def remove(ctx: Ctx, approval_id: int) -> None:
    """Remove those parts of the temporary worktree of an integration that exist."""
    async with ctx.repositories.exclusive():
        await _clear(ctx, approval_id)


async def _clear(ctx: Ctx, approval_id: int) -> None:
    repository = await ctx.repositories.open()
    for path in paths_of_gates(ctx.settings, approval_id):
        await to_thread(repository.remove_worktree, path, ctx.settings.gates / str(approval_id) / "repository")
        await to_thread(remove_tree, path.parent)


async def _run_all(ctx: Ctx, room: _Room, gates: list[GateResult], report: Report) -> list[GateResult] | None:
    for number, gate in enumerate(gates):

        async def progress(now: GateResult, number: int = number) -> bool:
            gates[number] = now
            return await report(gates)

        ended = await _run_one(ctx, room, gate, progress)
        if ended is None:
            return None
        gates[number] = ended
        if not await report(gates):
            return None
    return gates


async def _run_one(
    ctx: Ctx, room: _Room, gate: GateResult, progress: Callable[[GateResult], Awaitable[bool]]
) -> GateResult | None:
    """Run one command until all its processes have ended; None if the run was cancelled."""
    async with Gate(room.box) as way_out:
        return await _run_boxed(ctx, room, way_out, gate, progress)


async def _run_boxed(
    ctx: Ctx, room: _Room, way_out: Gate, gate: GateResult, progress: Callable[[GateResult], Awaitable[bool]]
) -> GateResult | None:
    output = room.place.git_dir.parent / "output"
    await to_thread(output.unlink, missing_ok=True)
    limit = ctx.settings.gate_seconds
    limits, command = BoxLimits(wall_seconds=limit + 60), ["/bin/sh", "-c", gate.command]
    argv = room.box.argv(command, limits, guarded=True, way_out=way_out.way_out)
    environment = {**room.environment, **way_out.environment}
    ref = await to_thread(
        ctx.processes.start, argv, cwd=room.place.path, env=environment, log=output, pass_fds=way_out.pass_fds
    )
    began = time.monotonic()
    reported, gate = began, replace(gate, state=GateState.RUNNING)
    is_needed = await progress(gate)
    try:
        while is_needed and ctx.processes.alive(ref):
            now = time.monotonic()
            if now - began > limit:
                return _result(ctx, room, gate, GateState.TIMEOUT, None, now - began, output)
            if output.stat().st_size > MAX_OUTPUT_BYTES:
                return _result(ctx, room, gate, GateState.FAILED, None, now - began, output)
            if now - reported >= REPORT_SECONDS:
                reported, gate = now, replace(gate, seconds=now - began, output=_tail(ctx, room, output))
                is_needed = await progress(gate)
            await asyncio.sleep(POLL_SECONDS)
        if not is_needed:
            return None
        code = ctx.processes.exit_code(ref)
        state = GateState.PASSED if code == 0 else GateState.FAILED
        ended = _result(ctx, room, gate, state, code, time.monotonic() - began, output)
        told = _explain(ended.output, room.box, room.place.path, way_out.refused)
        return ended if code == 0 else replace(ended, output=told)
    finally:
        await ctx.repositories.shielded(_end(ctx, ref))


def _environment(box: Box) -> dict[str, str]:
    """The environment of a gate, without colours in its output, which is shown outside a terminal."""
    variables = {name: value for name, value in os.environ.items() if name not in _COLOURS}
    return box.environment({**variables, "NO_COLOR": "1", "TERM": "dumb"})


async def _end(ctx: Ctx, ref: ProcessRef) -> None:
    """End a gate and all processes it started. A failure to end them is logged and does not change the result."""
    try:
        await to_thread(ctx.processes.terminate, ref, ctx.settings.terminate_grace_seconds)
    except Unavailable as error:
        log.warning("cannot end a gate: %s: %s", error.code, error.message)
    ctx.processes.forget(ref)


def _result(
    ctx: Ctx, room: _Room, gate: GateResult, state: GateState, code: int | None, seconds: float, output: Path
) -> GateResult:
    return replace(gate, state=state, exit_code=code, seconds=seconds, output=_tail(ctx, room, output))


def _explain(output: str, box: Box, cwd: Path, refused: Sequence[HostRefusal]) -> str:
    """The output of a gate that failed, with what its box may have refused."""
    refusals = explanation(output.splitlines(), box, cwd, refused)
    return "\n".join(filter(None, (output.rstrip("\n"), refusals))) if refusals else output


def _tail(ctx: Ctx, room: _Room, output: Path) -> str:
    """The end of a gate's output, starting at a whole line, as text that is safe in JSON, without secrets.

    The worktree is removed, so paths in it are told relative to it.
    """
    is_cut = output.stat().st_size > TAIL_BYTES
    text = atomic_file.tail(output, TAIL_BYTES).replace("\0", "\N{REPLACEMENT CHARACTER}")
    return room.box.translation_to(Path()).text(
        str(ctx.secrets.masked(text.partition("\n")[2] or text if is_cut else text))
    )
