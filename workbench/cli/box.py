"""The box of commands in a worktree: `box check` and `box explain` run a command there and tell what it is refused."""

from __future__ import annotations

import codecs
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, TextIO

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import JSON, root
from workbench.cli.output import write_out
from workbench.errors import Conflict
from workbench.present.inert import inert
from workbench.present.tables import Table
from workbench.rules.integration import OPEN, not_now
from workbench.state.machine import on_another

if TYPE_CHECKING:
    from workbench.confinement import Box
    from workbench.confinement.gate import Gate
    from workbench.confinement.refusals import Refusal
    from workbench.confinement.told import Translation
    from workbench.git import Repository
    from workbench.services.worktrees.places import WorktreeLocation
    from workbench.state.settings import Settings

COLUMNS = {"what": "refused", "wall": "by its", "remedy": "what opens it"}
NOTHING = "No refusal was seen."
WORDS = f"{__name__}.words"
NO_APPROVAL = 0
"""Where the files for a command at HEAD are: beside those of the gates of approvals, which are cleared as these are."""
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class BoxedDirectory:
    """A directory, the box of commands that run there, their variables, and the person's repository."""

    path: Path
    box: Box
    environment: Mapping[str, str]
    repository: Repository

    def way_out(self) -> AbstractContextManager[Gate]:
        """The gate of one command."""
        from workbench.confinement.gate import Gate

        return Gate.beside(self.box)


class BoxedCommand(click.Command):
    """A command whose arguments end with `-- COMMAND…`, which is passed on as it is in `ctx.meta`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`."""
        end = args.index("--") if "--" in args else len(args)
        ctx.meta[WORDS] = args[end + 1 :]
        return super().parse_args(ctx, args[:end])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """See `click.Command.collect_usage_pieces`."""
        return [*super().collect_usage_pieces(ctx), "--", "COMMAND..."]


@root.group()
def box() -> None:
    """The box of commands in a worktree: what they are refused, and which setting opens it."""


@box.command(cls=BoxedCommand)
@click.argument("name", metavar="[WORKTREE]", required=False, shell_complete=offers.worktrees)
@click.pass_context
def check(ctx: click.Context, name: str | None) -> None:
    """Run a command in a worktree's box, and tell what its output shows of refusals: `box check lab -- pytest`.

    Without a worktree it runs on the files of HEAD, in a worktree that exists only as long. The exit status is the
    command's.
    """
    _run(ctx, name, traced=False)


@box.command(cls=BoxedCommand)
@click.argument("name", metavar="[WORKTREE]", required=False, shell_complete=offers.worktrees)
@click.pass_context
def explain(ctx: click.Context, name: str | None) -> None:
    """Like `check`, but find all refusals, also those that no program prints: with `strace`, if it is installed.

    The command runs more slowly.
    """
    _run(ctx, name, traced=True)


@contextmanager
def boxed_directory(client: OperatorClient, name: str | None) -> Iterator[BoxedDirectory]:
    """A worktree and the box of its commands, with its target as it is now; None: one at HEAD, removed at the end.

    Raises:
        Conflict: ``WORKTREE_CLOSED``, ``EDITABLE_ENVIRONMENT``, ``BOX_CHECK_RUNNING``.
        Unavailable: ``WORKTREE_GONE``, ``CONFINEMENT_UNAVAILABLE``, ….
    """
    from workbench.confinement.editable import own_path, preceded
    from workbench.git import Repository
    from workbench.services.worktrees.places import box_of

    settings, repository = client.settings, Repository.open(client.settings.project)
    with _at_head(settings, repository) if name is None else nullcontext(_place(client, repository, name)) as place:
        box = box_of(settings, repository, place)
        environment = box.environment(os.environ)
        environment = preceded(environment, own_path(box, settings.project, place.path, environment))
        boxed = BoxedDirectory(place.path, box, environment, repository)
        _set_up(settings, place.name, boxed)
        yield boxed


def _set_up(settings: Settings, name: str, boxed: BoxedDirectory) -> None:
    """Run the set-up of the workplace, if the worktree is not ready.

    Raises:
        Unavailable: ``SETUP_FAILED``.
    """
    from workbench.confinement.refusals import explanation
    from workbench.rules.secrets.mask import Mask
    from workbench.services.processes.workplaces import of_settings, secrets_of
    from workbench.services.worktrees.kept_work import writer_lock
    from workbench.worker.preparation import due_setup, record_setup, setup_failed, setup_log

    workplace, record, log = of_settings(settings), settings.setups / name, settings.logs / f"setup-{name}.log"
    if not due_setup(workplace.setup, record, boxed.path):
        return
    with writer_lock(settings, name).held() as is_held:
        if not is_held:  # an agent works there, and has set it up
            return
        click.echo(f"The worktree is set up first, by {inert(workplace.setup)}", err=True)
        mask = Mask(set(secrets_of(workplace, dict(boxed.box.variables))))
        with boxed.way_out() as gate, setup_log(log, mask, boxed.box.translation) as output:
            argv = boxed.box.argv(["/bin/sh", "-c", workplace.setup], guarded=True, way_out=gate.way_out)
            code = _run_boxed(boxed, argv, gate, output.add, to_stderr=True, seconds=workplace.setup_seconds)
        if code and (refusals := explanation(output.telling.lines, boxed.box, boxed.path, gate.refused)):
            click.echo(inert(refusals), err=True)
        if code or code is None:
            ending = f"it ended with status {code}" if code else f"it took longer than {workplace.setup_seconds:g} s"
            raise setup_failed(ending, output.last if code else "", log)
        record_setup(workplace.setup, record, boxed.path)


def _place(client: OperatorClient, repository: Repository, name: str) -> WorktreeLocation:
    """Where an open worktree is, once it knows its target as it is now."""
    from workbench.services.worktrees.places import WorktreeLocation, checkout_of, is_there, worktree_gone
    from workbench.services.worktrees.update import learn_target

    (worktree,) = client.call("get_worktree_status", worktree_name=name)["worktrees"]
    if worktree["status"] not in OPEN:
        raise not_now(worktree["name"], worktree["status"])
    if not Path(worktree["path"]).is_absolute():
        raise on_another(worktree["machine"], f"The worktree {name}")
    place = WorktreeLocation.of(client.settings, worktree["name"])
    if not is_there(place):
        raise worktree_gone(place)
    if commit := repository.resolve(worktree["integration_target"]):
        learn_target(checkout_of(client.settings, repository, place), worktree, commit)
    return place


@contextmanager
def _at_head(settings: Settings, repository: Repository) -> Iterator[WorktreeLocation]:
    from workbench.services.processes.workplaces import of_settings
    from workbench.services.worktrees.places import WorktreeLocation, add_files, find_included, gates_held
    from workbench.system.tree_removal import remove_tree

    place = WorktreeLocation.of_trial(settings, str(NO_APPROVAL))

    def remove() -> None:
        with repository.lock():
            repository.remove_worktree(place.path, place.git_dir)
        remove_tree(place.path.parent)
        remove_tree(place.git_dir.parent)

    with gates_held(settings, NO_APPROVAL) as is_held:
        if not is_held:
            raise Conflict("BOX_CHECK_RUNNING", "Another command is checked at HEAD. Name a worktree, or try again.")
        try:
            remove()
            files = find_included(settings, repository, of_settings(settings))
            with repository.lock():
                add_files(settings, repository, place, None, "HEAD", include=files)
            yield place
        finally:
            remove()


def _run(ctx: click.Context, name: str | None, *, traced: bool) -> None:
    words: list[str] = ctx.meta[WORDS]
    if not words:
        raise click.UsageError("Put the command behind two hyphens, such as `-- pytest`.", ctx)
    as_json = bool(ctx.meta.get(JSON))
    with boxed_directory(ctx.obj, name) as boxed:
        code, refusals, note = _find_refusals(boxed, words, traced=traced, to_stderr=as_json)
    table = Table.of(
        [_row(refusal) for refusal in refusals], COLUMNS, " ".join(filter(None, [NOTHING, note])), note=note
    )
    if as_json:
        write_out(json.dumps({"exit_status": code, "refusals": table.data, "note": note}, indent=2))
    else:
        click.echo(inert(f"\nThe command ended with status {code}.\n{table!r}"), err=True)
    ctx.exit(code)


def _row(refusal: Refusal) -> dict[str, Any]:
    return {
        "what": refusal.what,
        "wall": refusal.wall.value,
        "remedy": refusal.remedy.removeprefix("the setting "),
        "setting": refusal.setting,
    }


def _find_refusals(
    boxed: BoxedDirectory, words: Sequence[str], *, traced: bool, to_stderr: bool
) -> tuple[int, list[Refusal], str]:
    """Run a command in its box: its exit status, what it was refused, and a note on what was missing or not trusted."""
    from workbench.confinement import traces
    from workbench.confinement.refusals import LINES, TellingLines, found_in_output, of_hosts
    from workbench.worker.checkout import explain_missing
    from workbench.worker.surroundings import tells_of_missing

    with TemporaryDirectory(prefix="workbench-trace-") as directory, boxed.way_out() as gate:
        output = Path(directory) / "trace"
        tracer = traces.tracer(output) if traced else []
        argv = [*tracer, *boxed.box.argv(words, guarded=True, way_out=gate.way_out)]
        telling, missing = TellingLines(), list[str]()

        def on_line(line: str) -> None:
            telling.add(line)
            if tells_of_missing(line) and len(missing) < LINES:
                missing.append(line)

        code = _run_boxed(boxed, argv, gate, on_line, to_stderr=to_stderr) or 0
        refusals = of_hosts(gate.refused)
        if output.exists():
            with output.open(encoding="utf-8", errors="surrogateescape") as trace:
                refusals += traces.found_in_trace(trace, boxed.box, boxed.path)
    if code or not traced:
        refusals += found_in_output(telling.lines, boxed.box, boxed.path)
    refusals = list(dict.fromkeys(refusals))
    lacking = explain_missing(boxed.repository, boxed.path, boxed.box, "\n".join(missing)) if code and missing else ""
    unused = unused_settings(boxed.box) if code or refusals else ""
    notes = [lacking, unused, traces.INSTALL if traced and not tracer else ""]
    return code, refusals, " ".join(filter(None, notes))


def unused_settings(box: Box) -> str:
    """A sentence about the settings of the project that its commands go without, because they are not trusted."""
    from workbench.rules.workplace import KEYS
    from workbench.state.settings_file import NOT_TRUSTED

    names = [name for name in box.untrusted if name in KEYS or name.startswith("confinement")]
    return NOT_TRUSTED.format(names=" and ".join(names)) if names else ""


def _run_boxed(
    boxed: BoxedDirectory,
    argv: Sequence[str],
    gate: Gate,
    on_line: Callable[[str], None],
    *,
    to_stderr: bool,
    seconds: float | None = None,
) -> int | None:
    """Run a command, and pass on its output, also its lines to `on_line`; its status.

    Args:
        seconds: how long it may take; if it takes longer it is ended, and there is no status.
    """
    pipe = subprocess.PIPE
    environment = {**boxed.environment, **gate.environment}
    with subprocess.Popen(
        argv, cwd=boxed.path, env=environment, stdout=pipe, stderr=pipe, pass_fds=gate.pass_fds
    ) as process:
        targets = ((process.stdout, sys.stderr if to_stderr else sys.stdout), (process.stderr, sys.stderr))
        readers = [
            threading.Thread(target=_pass_on, args=(stream, target, boxed.box.translation, on_line))
            for stream, target in targets
            if stream is not None
        ]
        for reader in readers:
            reader.start()
        code = _wait_for(process, seconds)
        for reader in readers:
            reader.join()
    return code if code is None or code >= 0 else 128 - code


def _pass_on(source: IO[bytes], target: TextIO, translation: Translation, on_line: Callable[[str], None]) -> None:
    """Pass on what a program writes as it comes, with the paths of this side; its lines, as they are, to `on_line`."""
    from workbench.confinement.told import Stream

    decoder, line, told = codecs.getincrementaldecoder("utf-8")("replace"), "", Stream(translation)
    while chunk := os.read(source.fileno(), _CHUNK):
        text = decoder.decode(chunk)
        _write(target, told.add(text))
        *lines, rest = (line + text).split("\n")
        line = rest[:_CHUNK]
        for whole in lines:
            on_line(whole)
    _write(target, told.flush())
    if line:
        on_line(line)


def _write(target: TextIO, text: str) -> None:
    with suppress(OSError):  # the reader of a pipe has enough
        target.write(text)
        target.flush()


def _wait_for(process: subprocess.Popen[bytes], seconds: float | None) -> int | None:
    """Wait until a command has ended; None: it took too long. It handles an interrupt from the terminal itself."""
    is_late, deadline = False, math.inf if seconds is None else time.monotonic() + seconds
    while True:
        with suppress(KeyboardInterrupt):
            try:
                code = process.wait(None if is_late or seconds is None else max(0.0, deadline - time.monotonic()))
                return None if is_late else code
            except subprocess.TimeoutExpired:
                is_late = True
                process.terminate()
