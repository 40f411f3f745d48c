"""Commands on a commit, as a trial of it: in a box, in a temporary worktree, with a time limit each.

The gates of integrations and the checks of tasks are such commands: they run code that workers wrote.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.confinement import Box, BoxLimits
from workbench.confinement.editable import own_path, preceded
from workbench.confinement.gate import Gate
from workbench.confinement.lending import Lent
from workbench.confinement.refusals import explanation
from workbench.errors import Unavailable
from workbench.git import Repository
from workbench.ops import Ctx
from workbench.process import ProcessRef
from workbench.rules.hosts import HostRefusal
from workbench.rules.integration import GateState
from workbench.services.access import secret_marks
from workbench.services.processes.workplaces import of_settings, secrets_of
from workbench.services.resources import leases
from workbench.services.worktrees.places import (
    WorktreeLocation,
    add_files,
    box_of,
    checkout_of,
    find_included,
    included_secrets,
    paths_of_trial,
)
from workbench.system import atomic_file
from workbench.system.tree_removal import remove_tree

TAIL_BYTES = 16_384
"""How much of the end of a command's output is kept."""
MAX_OUTPUT_BYTES = 64 << 20
"""A command that writes more is stopped."""
_COLOURS = ("CLICOLOR_FORCE", "FORCE_COLOR", "PY_COLORS")
POLL_SECONDS = 0.05
REPORT_SECONDS = 1.0
"""How often a running command is checked, and its output reported."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrialResult:
    """A command and its result so far; `output` is the end of what it wrote."""

    command: str
    state: GateState = GateState.WAITING
    exit_code: int | None = None
    seconds: float = 0.0
    output: str = ""

    def as_json(self) -> dict[str, Any]:
        """As an approval shows it."""
        return {
            "command": self.command,
            "state": str(self.state),
            "exit_code": self.exit_code,
            "seconds": round(self.seconds, 1),
            "output": self.output,
        }


@dataclass(frozen=True, slots=True)
class Trial:
    """Where commands are tried: a temporary worktree, the box of the commands, and their variables."""

    place: WorktreeLocation
    box: Box
    environment: Mapping[str, str]


Progress = Callable[[TrialResult], Awaitable[bool]]
"""Called with the state of a running command; returns False to cancel it."""


@asynccontextmanager
async def on_commit(ctx: Ctx, name: str, commit: str, lent: Lent | None = None) -> AsyncIterator[Trial]:
    """A trial of a commit, whose files are removed after the block.

    Args:
        name: of the trial; no two of a name exist at a time.
        lent: what its commands get of what an attempt holds; None: none, but a GPU that is free if the settings ask.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``, ``GIT_BUSY``, ``WORKTREE_PATH_UNUSABLE``, ….
        Conflict: ``EDITABLE_ENVIRONMENT``.
    """
    try:
        yield await ctx.local.repositories.shielded(_make(ctx, name, commit, lent))
    finally:
        await ctx.local.repositories.shielded(remove(ctx, name))


async def _make(ctx: Ctx, name: str, commit: str, lent: Lent | None) -> Trial:
    place = WorktreeLocation.of_trial(ctx.settings, name)
    async with ctx.local.repositories.exclusive() as repository:
        await _clear(ctx, name)
        copied = await to_thread(find_included, ctx.settings, repository, of_settings(ctx.settings))
        await to_thread(add_files, ctx.settings, repository, place, None, commit, include=copied)
        box = await _box(ctx, repository, place, lent)
    included = await to_thread(included_secrets, ctx.settings, copied)
    await secret_marks.learn(ctx, [*included, *secrets_of(of_settings(ctx.settings), dict(box.variables))])
    environment = {**_environment(box), **(lent.variables if lent else {})}
    path = await to_thread(own_path, box, ctx.settings.project, place.path, environment)
    return Trial(place, box, preceded(environment, path))


async def restore(ctx: Ctx, trial: Trial, commit: str, paths: Sequence[str]) -> None:
    """Give paths of a trial the content that they have at another commit; what is not there goes.

    Raises:
        Unavailable: ``GIT_BUSY``, ``GIT_FAILED``, ….
    """
    async with ctx.local.repositories.exclusive() as repository:
        checkout = await to_thread(checkout_of, ctx.settings, repository, trial.place)
        await to_thread(checkout.restore, commit, paths)


async def _box(ctx: Ctx, repository: Repository, place: WorktreeLocation, lent: Lent | None) -> Box:
    if lent is not None and lent.devices:
        box = await to_thread(box_of, ctx.settings, repository, place, with_gpu=False)
        return box.lending(map(Path, lent.devices), map(Path, lent.read))
    taken = await ctx.read(lambda tx: leases.leased_gpus(tx, ctx.local.machine.only))
    return await to_thread(box_of, ctx.settings, repository, place, taken)


async def remove(ctx: Ctx, name: str) -> None:
    """Remove those parts of the temporary worktree of a trial that exist."""
    async with ctx.local.repositories.exclusive():
        await _clear(ctx, name)


async def _clear(ctx: Ctx, name: str) -> None:
    repository = await ctx.local.repositories.open()
    for path in paths_of_trial(ctx.settings, name):
        await to_thread(repository.remove_worktree, path, ctx.settings.gates / name / "repository")
        await to_thread(remove_tree, path.parent)


async def run(
    ctx: Ctx,
    trial: Trial,
    result: TrialResult,
    progress: Progress,
    *,
    argv: Sequence[str] | None = None,
    limit: float | None = None,
    variables: Mapping[str, str] | None = None,
) -> TrialResult | None:
    """Run one command until all its processes have ended; None if it was cancelled.

    Args:
        argv: the words of the command; None: it is a line for the shell.
        limit: seconds; None: those of the setting ``gate_seconds``.
        variables: of the command, besides those of the trial.
    """
    words = argv or ["/bin/sh", "-c", result.command]
    trial = replace(trial, environment={**trial.environment, **(variables or {})})
    async with Gate(trial.box) as way_out:
        return await _run_boxed(ctx, trial, way_out, result, progress, words, limit or ctx.settings.gate_seconds)


async def _run_boxed(
    ctx: Ctx,
    trial: Trial,
    way_out: Gate,
    result: TrialResult,
    progress: Progress,
    words: Sequence[str],
    limit: float,
) -> TrialResult | None:
    output = trial.place.git_dir.parent / "output"
    await to_thread(output.unlink, missing_ok=True)
    argv = trial.box.argv(words, BoxLimits(wall_seconds=limit + 60), guarded=True, way_out=way_out.way_out)
    environment = {**trial.environment, **way_out.environment}
    ref = await to_thread(
        ctx.local.processes.start, argv, cwd=trial.place.path, env=environment, log=output, pass_fds=way_out.pass_fds
    )
    began = time.monotonic()
    reported, result = began, replace(result, state=GateState.RUNNING)
    is_needed = await progress(result)
    try:
        while is_needed and ctx.local.processes.alive(ref):
            now = time.monotonic()
            if now - began > limit:
                ended = _result(ctx, trial, result, GateState.TIMEOUT, None, now - began, output)
                return _because(ended, f"it took longer than {limit:g} s")
            if output.stat().st_size > MAX_OUTPUT_BYTES:
                return _flooded(_result(ctx, trial, result, GateState.FAILED, None, now - began, output))
            if now - reported >= REPORT_SECONDS:
                reported, result = now, replace(result, seconds=now - began, output=_tail(ctx, trial, output))
                is_needed = await progress(result)
            await asyncio.sleep(POLL_SECONDS)
        if not is_needed:
            return None
        if output.stat().st_size > MAX_OUTPUT_BYTES:  # it ended between two looks
            return _flooded(_result(ctx, trial, result, GateState.FAILED, None, time.monotonic() - began, output))
        code = ctx.local.processes.exit_code(ref)
        state = GateState.PASSED if code == 0 else GateState.FAILED
        ended = _result(ctx, trial, result, state, code, time.monotonic() - began, output)
        told = _explain(ended.output, trial.box, trial.place.path, way_out.refused)
        return ended if code == 0 else replace(ended, output=told)
    finally:
        await ctx.local.repositories.shielded(_end(ctx, ref))


def _environment(box: Box) -> dict[str, str]:
    """The environment of a result, without colours in its output, which is shown outside a terminal."""
    variables = {name: value for name, value in os.environ.items() if name not in _COLOURS}
    return box.environment({**variables, "NO_COLOR": "1", "TERM": "dumb"})


async def _end(ctx: Ctx, ref: ProcessRef) -> None:
    """End a command and all processes it started. A failure to end them is logged and does not change the result."""
    try:
        await to_thread(ctx.local.processes.terminate, ref, ctx.settings.terminate_grace_seconds)
    except Unavailable as error:
        log.warning("cannot end the command of a trial: %s: %s", error.code, error.message)
    ctx.local.processes.forget(ref)


def _result(
    ctx: Ctx, trial: Trial, result: TrialResult, state: GateState, code: int | None, seconds: float, output: Path
) -> TrialResult:
    return replace(result, state=state, exit_code=code, seconds=seconds, output=_tail(ctx, trial, output))


def _because(result: TrialResult, why: str) -> TrialResult:
    """The result of a command that was ended, with the reason as the last line of its output."""
    output = result.output.rstrip("\n")
    return replace(result, output=f"{output}\nThe command was ended: {why}.".lstrip())


def _flooded(result: TrialResult) -> TrialResult:
    return _because(result, f"it wrote more than {MAX_OUTPUT_BYTES >> 20} MB")


def _explain(output: str, box: Box, cwd: Path, refused: Sequence[HostRefusal]) -> str:
    """The output of a command that failed, with what its box may have refused."""
    refusals = explanation(output.splitlines(), box, cwd, refused)
    return "\n".join(filter(None, (output.rstrip("\n"), refusals))) if refusals else output


def _tail(ctx: Ctx, trial: Trial, output: Path) -> str:
    """The end of a command's output, starting at a whole line, as text that is safe in JSON, without secrets.

    The worktree is removed, so paths in it are told relative to it.
    """
    is_cut = output.stat().st_size > TAIL_BYTES
    text = atomic_file.tail(output, TAIL_BYTES).replace("\0", "\N{REPLACEMENT CHARACTER}")
    return trial.box.translation_to(Path()).text(
        str(ctx.secrets.masked(text.partition("\n")[2] or text if is_cut else text))
    )
