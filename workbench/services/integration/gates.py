"""Commands that have to pass on the result of a merge before it is made (spec 3, integration).

They run what workers wrote: in a box, in a temporary worktree of the merge result, each for a limited time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench import atomic_file
from workbench.confinement import Box, Limits
from workbench.errors import Unavailable
from workbench.ops import Ctx
from workbench.process import ProcessRef
from workbench.rules.integration import GateState
from workbench.services.worktrees.places import Place, box_of

TAIL_BYTES = 16_384
"""What is kept of a gate's output: its end."""
MOST_BYTES = 64 << 20
"""A gate that writes more is stopped."""
_COLOURS = ("CLICOLOR_FORCE", "FORCE_COLOR", "PY_COLORS")
LOOK_SECONDS = 0.05
TELL_SECONDS = 1.0
"""How often a gate is looked after, and its output told on."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gate:
    """A command, and how it went; `seconds` so far, `output` the end of what it wrote."""

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


Tell = Callable[[Sequence[Gate]], Awaitable[bool]]
"""Hears how the gates stand; False: nobody wants to know any more."""


async def run(ctx: Ctx, approval_id: int, commit: str, commands: Sequence[str], tell: Tell) -> list[Gate] | None:
    """Run all commands on a commit, one after another; how they went, or None if it was called off.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``, ``GIT_BUSY``, ``WORKTREE_PATH_UNUSABLE``, ….
    """
    place = Place.of_gates(ctx.settings, approval_id)
    try:
        box = await ctx.repositories.shielded(_make(ctx, place, commit))
        return await _run_all(ctx, place, box, [Gate(command) for command in commands], tell)
    finally:
        await ctx.repositories.shielded(remove(ctx, place))


async def _make(ctx: Ctx, place: Place, commit: str) -> Box:
    async with ctx.repositories.exclusive() as repository:
        await _clear(ctx, place)
        await to_thread(repository.add_worktree, place.path, place.git_dir, None, commit)
        return await to_thread(box_of, ctx.settings, repository, place)


async def remove(ctx: Ctx, place: Place) -> None:
    """Remove a temporary worktree, whatever is there of it."""
    async with ctx.repositories.exclusive():
        await _clear(ctx, place)


async def _clear(ctx: Ctx, place: Place) -> None:
    repository = await ctx.repositories.open()
    await to_thread(repository.remove_worktree, place.path, place.git_dir)
    await to_thread(shutil.rmtree, place.path.parent, ignore_errors=True)


async def _run_all(ctx: Ctx, place: Place, box: Box, gates: list[Gate], tell: Tell) -> list[Gate] | None:
    for number, gate in enumerate(gates):

        async def progress(now: Gate, number: int = number) -> bool:
            gates[number] = now
            return await tell(gates)

        done = await _run_one(ctx, place, box, gate, progress)
        if done is None:
            return None
        gates[number] = done
        if not await tell(gates):
            return None
    return gates


async def _run_one(
    ctx: Ctx, place: Place, box: Box, gate: Gate, progress: Callable[[Gate], Awaitable[bool]]
) -> Gate | None:
    """One command, from its start until nothing of it is left; None if it was called off."""
    output = place.path.parent / "output"
    await to_thread(output.unlink, missing_ok=True)
    limit = ctx.settings.gate_seconds
    argv = box.argv(["/bin/sh", "-c", gate.command], Limits(wall_seconds=limit + 60))
    ref = await to_thread(ctx.processes.start, argv, cwd=place.path, env=_environment(box), log=output)
    began = time.monotonic()
    told, gate = began, replace(gate, state=GateState.RUNNING)
    wanted = await progress(gate)
    try:
        while wanted and ctx.processes.alive(ref):
            now = time.monotonic()
            if now - began > limit:
                return _ended(gate, GateState.TIMEOUT, None, now - began, output)
            if output.stat().st_size > MOST_BYTES:
                return _ended(gate, GateState.FAILED, None, now - began, output)
            if now - told >= TELL_SECONDS:
                told, gate = now, replace(gate, seconds=now - began, output=_tail(output))
                wanted = await progress(gate)
            await asyncio.sleep(LOOK_SECONDS)
        if not wanted:
            return None
        code = ctx.processes.exit_code(ref)
        state = GateState.PASSED if code == 0 else GateState.FAILED
        return _ended(gate, state, code, time.monotonic() - began, output)
    finally:
        await ctx.repositories.shielded(_end(ctx, ref))


def _environment(box: Box) -> dict[str, str]:
    """Variables of a gate: it writes for a page, not for a terminal."""
    kept = {name: value for name, value in os.environ.items() if name not in _COLOURS}
    return box.environment({**kept, "NO_COLOR": "1", "TERM": "dumb"})


async def _end(ctx: Ctx, ref: ProcessRef) -> None:
    """End a gate with all it started. What the system does not end is logged; it does not change how the gate went."""
    try:
        await to_thread(ctx.processes.terminate, ref, ctx.settings.terminate_grace_seconds)
    except Unavailable as error:
        log.warning("a gate: %s: %s", error.code, error.message)
    ctx.processes.forget(ref)


def _ended(gate: Gate, state: GateState, code: int | None, seconds: float, output: Path) -> Gate:
    return replace(gate, state=state, exit_code=code, seconds=seconds, output=_tail(output))


def _tail(output: Path) -> str:
    """The end of what a gate wrote, without a line that is cut, as text that JSON can carry."""
    is_cut = output.stat().st_size > TAIL_BYTES
    text = atomic_file.tail(output, TAIL_BYTES).replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.partition("\n")[2] or text if is_cut else text
