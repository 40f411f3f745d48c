"""One attempt at a task: the input of its command, and the outcome that its exit means.

The contract with the command: the task as JSON on standard input (or the prompt, if its profile asks for that), in
`WORKBENCH_TASK_FILE` and, up to 100,000 bytes, in `WORKBENCH_TASK`; `WORKBENCH_TASK_ID`, `WORKBENCH_ATTEMPT` and
`WORKBENCH_AGENT`; the persona's text in the file that `WORKBENCH_PERSONA` names; what `definition` adds. Exit status 0
completes the task with the JSON object found at `WORKBENCH_RESULT`, which is the result, or an envelope of `result`,
`metrics` and `artifacts`; 75 (EX_TEMPFAIL) asks for another attempt; anything else fails under the retry rule.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.confinement import Box, BoxLimits
from workbench.confinement.editable import preceded
from workbench.confinement.refusals import TellingLines, explanation
from workbench.drivers import (
    Configuration,
    ModelAccess,
    ProgramFailure,
    ProgramStream,
    ProgramUsage,
    Start,
    TelemetryAccess,
    Told,
    acp,
)
from workbench.git import CommitIdentity
from workbench.rules import profile as rules
from workbench.rules.failures import ASKED
from workbench.rules.secrets.mask import LineMask, Mask
from workbench.rules.tasks import artifacts
from workbench.rules.wire import json_safety
from workbench.state.home import home
from workbench.worker import command, definition, person, previous, run_function, scratch, sessions
from workbench.worker.command import CommandResult, WorkerCommand
from workbench.worker.listening import Call, Listener
from workbench.worker.messages import Mailbox
from workbench.worker.sessions import KeptSession, SessionStore
from workbench.worker.startup import WorkerConfig

EX_TEMPFAIL = 75
CANNOT_START = (125, 126, 127)
"""Exit statuses of the launcher and the shell for a command that cannot be confined, or executed, or is not there."""
RESULT = "result.json"
RESULT_LIMIT = 10_000_000
VARIABLE_LIMIT = 100_000
"""Linux takes no variable of more than 128 KiB."""
TAIL_LINES = 15
ANSWER_FRAME = 1_000
"""Bytes of a result besides the answer in it."""
OUTPUT_LIMIT = 8_000
"""Characters of the output in an error, so that what follows it is not cut off."""
CAUSE_LIMIT = 300
"""Characters of the last line of the output in the first line of an error."""
_ENVELOPE = frozenset(("result", "metrics", "artifacts"))
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Exit|Interrupt))(?::\s|$)")
"""The line with which Python, and JavaScript, end when an exception ends them."""
_AFTER_TRACEBACK = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Z]\w*)(?::\s|$)")
"""The same below the last line of a traceback, where any name is that of an exception."""
NOT_STARTED = "not started"
"""The class of the error of a command that could not be started."""


@dataclass(frozen=True)
class AttemptOutcome:
    """The outcome of an attempt."""

    ok: bool
    result: Any = None
    artifacts: Sequence[str] = ()
    error: str = ""
    retryable: bool = True
    error_class: str | None = None
    notes: Sequence[str] = ()
    """Lines about the result, added to the output."""
    failure: ProgramFailure | None = None
    """How the program of the agent failed, as its driver tells."""
    usage: ProgramUsage | None = None
    """What its program says that it has used."""


@dataclass
class _Tail:
    """The last lines of an output."""

    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        self.lines = [*self.lines, line][-TAIL_LINES:]

    @property
    def exception(self) -> str | None:
        """The class of the exception with which the program ended, if it said so."""
        above = ["", *self.lines]
        for line, before in zip(reversed(self.lines), reversed(above[:-1]), strict=True):
            is_below = before.startswith("  ") and any(other.startswith('  File "') for other in self.lines)
            if match := (_AFTER_TRACEBACK if is_below else _EXCEPTION).match(line):
                return match[1]
        return None

    def __str__(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True)
class Worker:
    """The worker that makes the attempt."""

    config: WorkerConfig
    agent_id: str
    persona: str
    """The text of its persona."""
    adopts_orphans: bool
    """See `ProcessTree`."""
    token: str | None = field(default=None, repr=False)
    """The command's own token, valid for the attempt, if its profile passes one on."""
    model_token: str | None = field(default=None, repr=False)
    """The command's token for models, valid for the attempt, if the server answers for a provider."""
    tells: bool = False
    """Whether its program tells the server of its requests by OpenTelemetry."""
    python_path: str = ""
    """What stands first in its PYTHONPATH; see `own_path`."""

    @property
    def models(self) -> ModelAccess | None:
        """Where the command asks for models; None: at the providers themselves."""
        if self.model_token is None:
            return None
        return ModelAccess(self.config.url, tuple(self.config.models), self.model_token)

    @property
    def telemetry(self) -> TelemetryAccess | None:
        """Where the command's program tells of itself; None: nowhere."""
        return TelemetryAccess(self.config.url, self.token) if self.tells and self.token else None


def author(agent_id: str) -> CommitIdentity:
    """The author of an agent's commits."""
    return CommitIdentity(agent_id, f"{agent_id}@workbench.localhost")


async def run(
    worker: Worker,
    task: Mapping[str, Any],
    cwd: Path | None,
    on_line: Callable[[str], None],
    on_call: Callable[[Call], None] = lambda call: None,
    mailbox: Mailbox | None = None,
) -> AttemptOutcome:
    """Run a task's command to its end; cancelling ends the command with all it started.

    Secrets are masked in everything that the command writes, see `secrets_of`, and its paths are those outside its box.

    Args:
        task: the task as the server gave it.
        cwd: the directory it runs in, which is that of its worktree, or of a checkout that it may only read; None: a
            new one that is removed after the attempt.
        on_line: called with each line of output.
        on_call: called with the beginnings and the ends of calls of tools that the agent's program tells of.
        mailbox: where the agent gets what it is told meanwhile.

    Raises:
        Unavailable: ``PROCESS_SURVIVED``.
    """
    try:
        mask = Mask(set(secrets_of(worker)))
    except OSError as error:
        return _fail_to_start(error)
    outcome = _tell(await _run(worker, task, cwd, on_line, on_call, mask, mailbox), worker.config.box)
    made_in = cwd if worker.config.worktree else None
    for note in (*outcome.notes, *_missing_files(outcome.artifacts, made_in)):
        on_line(mask.text(note))
    result, made = mask.data(outcome.result), tuple(map(mask.text, outcome.artifacts))
    return replace(outcome, result=result, artifacts=made, error=mask.text(outcome.error))


def _tell(outcome: AttemptOutcome, box: Box) -> AttemptOutcome:
    """An outcome with the paths in what the command made as they are outside its box; its error has them already."""
    made = [str(box.outside(Path(name))) if name.startswith("/") else name for name in outcome.artifacts]
    return replace(outcome, result=box.translation.data(outcome.result), artifacts=made)


def _missing_files(names: Sequence[str], cwd: Path | None) -> Iterator[str]:
    """Notes about artifacts that are no files of the worktree, although their names say so."""
    if cwd is None:
        return
    for name in names:
        path = artifacts.place(name, cwd) if artifacts.kind(name) == "file" else None
        if path is not None and not os.path.lexists(cwd / path):
            yield f"[the result names the artifact {path}, which is no file of the worktree]"


def secrets_of(worker: Worker) -> Iterator[str]:
    """The secrets that a command is given: tokens, those of the agent's definition, and those in its variables, in the
    files that it gets from the person's home, and in those of its worktree that git ignores.

    Raises:
        OSError: a file cannot be read.
    """
    config = worker.config
    yield from (token for token in (config.token, worker.token, worker.model_token) if token)
    yield from config.definition.secrets if config.definition else ()
    yield from config.included_secrets
    yield from person.secrets(config.profile, config.environment, config.secret_variables, worker.models)


async def _run(
    worker: Worker,
    task: Mapping[str, Any],
    cwd: Path | None,
    on_line: Callable[[str], None],
    on_call: Callable[[Call], None],
    mask: Mask,
    mailbox: Mailbox | None,
) -> AttemptOutcome:
    """Run a task's command, and again with what its agent was told meanwhile, if its program can continue.

    Its output is masked before it is cut, or half a secret could remain.
    """
    if worker.config.profile.command is None and not task["run"]:
        return AttemptOutcome(False, error="This task has no command; a script worker cannot do it.", retryable=False)
    tail, telling, masked = _Tail(), TellingLines(), LineMask(mask.text)
    translation = worker.config.box.translation

    def told(value: Any) -> Any:
        return translation.data(mask.data(value))

    def keep(line: str) -> None:
        line = translation.text(masked(line))
        tail.add(line)
        telling.add(line)
        on_line(line)

    with scratch.directory(worker.config.scratch, f"{task['id']}-{task['attempt']}") as scratch_dir:

        def listener(stream: ProgramStream) -> Listener:
            taken = mailbox.note_taken if mailbox else lambda message: None
            return Listener(stream, told, keep, on_call, telling.add, worker.config.silence_seconds, taken)

        turns = _Turns(worker, task, cwd, scratch_dir, keep, listener, mailbox)
        store = _sessions(worker, task)
        try:
            result = await turns.make(await asyncio.to_thread(store.take, scratch_dir) if store else None)
        except (OSError, ValueError) as error:
            return _fail_to_start(error)
        finally:
            if store and turns.listener:
                store.keep(scratch_dir, turns.listener.stream, Mask(set(secrets_of(worker)), forms=False).text)
        heard, outcome = turns.listener, None
        if heard is None and result.status == 0 and result.exceeded is None:
            outcome = _success(worker.config, scratch_dir, str(tail), mask)
        failure = heard.failure(result) if heard and result.exceeded is None else None
        if heard and result.exceeded is None and failure is None:
            outcome = _success(worker.config, scratch_dir, heard.stream.answer, mask)
        if outcome is None:
            refusals = explanation(telling.lines, turns.command.box, turns.command.cwd, result.refused)
            outcome = _program_failure(failure, tail, refusals) if failure else _failure(result, tail, refusals)
        return replace(outcome, usage=turns.usage)


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a run of the command begins with: a conversation to continue, and messages to the agent, if it is not the
    first."""

    session: KeptSession | None
    messages: Sequence[Told] = ()


@dataclass
class _Turns:
    """The runs of an attempt's command: the first, and another one whenever the agent was told something that its
    program can only be told as a prompt."""

    worker: Worker
    task: Mapping[str, Any]
    cwd: Path | None
    scratch_dir: Path
    keep: Callable[[str], None]
    listening: Callable[[ProgramStream], Listener]
    mailbox: Mailbox | None
    listener: Listener | None = None
    usage: ProgramUsage | None = None
    command: WorkerCommand = field(init=False)

    async def make(self, session: KeptSession | None) -> CommandResult:
        """Run the command until there is nothing more to tell its agent; how it ended at last."""
        began_at = time.monotonic()
        turn: _Turn | None = _Turn(session)
        while turn:
            result = await self._run(turn, began_at)
            turn = await self._next(result)
        return result

    async def _run(self, turn: _Turn, began_at: float) -> CommandResult:
        config = self.worker.config
        stream = definition.stream(config.definition, config.profile)
        self.listener = self.listening(stream) if stream else None
        command = _prepare(self.worker, self.task, self.cwd, self.scratch_dir, turn, stream)
        self.command = replace(command, began_at=began_at)
        result = await self._carry_out()
        if stream:
            spent = stream.usage.since(turn.session.usage if turn.session else None)
            self.usage = self.usage.plus(spent) if self.usage else spent
        return result

    async def _carry_out(self) -> CommandResult:
        to_run, hear, heard = self.command, self.keep, self.listener
        async with contextlib.AsyncExitStack() as served:
            if heard is not None:
                hear, say, news = heard.hear, heard.say if heard.stream.talks else None, None
                if self.mailbox and definition.takes_another_prompt(self.worker.config.profile):
                    news = await served.enter_async_context(self.mailbox.serving(heard))
                to_run = replace(to_run, on_error=heard.hear_error, verdict=heard.verdict, say=say, news=news)
            grace, adopts_orphans = self.worker.config.grace_seconds, self.worker.adopts_orphans
            return await command.run(to_run, hear, grace=grace, adopts_orphans=adopts_orphans)

    async def _next(self, result: CommandResult) -> _Turn | None:
        """The run for what the agent has been told and not got; None: there is nothing, or it cannot be told.

        A turn that was ended for a message begins anew, if its program has no conversation to continue.
        """
        profile = self.worker.config.profile
        if not (self.mailbox and self.listener) or result.exceeded or not definition.takes_another_prompt(profile):
            return None
        stream, session = self.listener.stream, None
        if stream.session and definition.can_continue(profile) and profile.stream:
            session = sessions.under_way(self.scratch_dir, profile.stream, stream)
        if stream.is_hopeless or not (stream.is_interrupted or (session and self.listener.failure(result) is None)):
            return None
        messages = await self.mailbox.left()
        if not messages and stream.is_interrupted:
            messages = list(stream.untaken.values())
        for message in messages:
            self.keep(f"[told: message {message.id}]")
            self.mailbox.note_taken(message.id)
        return _Turn(session, messages) if messages else None


def _sessions(worker: Worker, task: Mapping[str, Any]) -> SessionStore | None:
    """Where the conversation of the agent's program about a task is kept; None: it is not."""
    config = worker.config
    if config.sessions is None or config.profile.stream is None or not config.session_bytes:
        return None
    return SessionStore(config.sessions / str(task["id"]), config.profile.stream, config.session_bytes)


def _fail_to_start(error: Exception) -> AttemptOutcome:
    why = f"The command could not be started: {error}."
    return AttemptOutcome(False, error=why, retryable=False, error_class=NOT_STARTED)


def _failure(result: CommandResult, tail: _Tail, refusals: str) -> AttemptOutcome:
    if result.exceeded:
        error = _explain(f"The command was ended: {result.exceeded}.", tail, refusals)
        return AttemptOutcome(False, error=error, error_class="LIMIT")
    if result.status in CANNOT_START:
        error = _explain("The command could not be started", tail, refusals)
        return AttemptOutcome(False, error=error, retryable=False, error_class=NOT_STARTED)
    retry = " and asked to be tried again" if result.status == EX_TEMPFAIL else ""
    how = f"with status {result.status}" if result.status >= 0 else f"by the signal {_signal_name(-result.status)}"
    error = _explain(f"The command ended {how}{retry}", tail, refusals)
    ending = f"exit status {result.status}" if result.status >= 0 else f"signal {-result.status}"
    return AttemptOutcome(False, error=error, error_class=tail.exception or ending)


def _program_failure(failure: ProgramFailure, tail: _Tail, refusals: str) -> AttemptOutcome:
    """The outcome of an attempt whose program has said how it failed."""
    message = failure.message if failure.message.endswith((".", "!", "?")) else f"{failure.message}."
    return AttemptOutcome(
        False,
        error=_explain(message, tail, refusals),
        retryable=failure.kind not in ASKED,
        error_class=str(failure.kind),
        failure=failure,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal between the two that have names
        return str(number)


def _explain(ending: str, tail: _Tail, refusals: str) -> str:
    """An error: how the command ended and its last line, mostly the cause; then why; then its output."""
    output = str(tail)[-OUTPUT_LIMIT:].strip("\n")
    cause = output.rpartition("\n")[2].strip()[:CAUSE_LIMIT]
    first = ending if ending.endswith(".") else f"{ending}: {cause}" if cause else f"{ending}."
    rest = output if output != cause or first == ending else ""
    return "\n".join(filter(None, (first, refusals, rest)))


def _prepare(
    worker: Worker,
    task: Mapping[str, Any],
    cwd: Path | None,
    scratch_dir: Path,
    turn: _Turn,
    stream: ProgramStream | None,
) -> WorkerCommand:
    config, profile, session = worker.config, worker.config.profile, turn.session
    if cwd is None:
        cwd = scratch_dir / "work"
        cwd.mkdir(exist_ok=True)
    tells_itself = profile.stream == "acp"  # of a continued conversation, once there is one
    last_attempt = previous.told(task, is_continued=session is not None and not tells_itself)
    values = _values(worker, task, cwd, scratch_dir, last_attempt)
    if turn.messages:
        first = () if session else (values["prompt"],)
        values["prompt"] = "\n\n".join((*first, *(message.text for message in turn.messages)))
    files = {name: rules.fill(text, values, file=name) for name, text in profile.files.items()}
    if worker.token:
        files["mcp.json"] = json.dumps(rules.mcp_config(config.mcp_url, worker.token))
    files |= {"persona.md": worker.persona, "task.json": json.dumps(task), "prompt.md": values["prompt"]}
    added = definition.configuration(config.definition, profile, scratch_dir, files, worker.models, worker.telemetry)
    if not turn.messages:  # else a command has written there, and is not trusted
        scratch.write(scratch_dir, {**files, **added.files})
        _copy(profile, scratch_dir, worker.models)
    box = replace(config.box, scratch=scratch_dir)
    argv = task["run"]
    if profile.command is not None:
        words: Sequence[str] = [rules.fill(part, values) for part in profile.command]
        words, box = definition.limited(words, config.definition, profile, box)
        argv = definition.started([*words, *added.arguments], profile, session)
    if stream:
        of_server = rules.mcp_config(config.mcp_url, worker.token) if worker.token else {}
        continued = session.id if session else None
        stream.begin(Start(values["prompt"], values["worktree"], acp.servers(of_server), continued))
    return WorkerCommand(
        argv=["/bin/sh", "-c", argv] if isinstance(argv, str) else argv,
        box=box,
        backstop=_backstop(config.limits),
        cwd=cwd,
        environment=_environment(worker, task, box, values, added),
        stdin=values["prompt"] if profile.stdin == "prompt" else json.dumps(task),
        limits=config.limits,
    )


def _backstop(limits: BoxLimits) -> BoxLimits:
    """Limits for the system, above those that the supervisor checks: only the supervisor reports which was exceeded."""
    cpu, memory = limits.cpu_seconds, limits.memory_bytes
    return BoxLimits(
        cpu_seconds=None if cpu is None else cpu + 2,
        memory_bytes=None if memory is None else memory + memory // 4 + (64 << 20),
    )


def _values(worker: Worker, task: Mapping[str, Any], cwd: Path, scratch_dir: Path, last_attempt: str) -> dict[str, str]:
    config = worker.config
    values = {
        "title": task["title"],
        "description": task.get("description", ""),
        "task_id": str(task["id"]),
        "attempt": str(task["attempt"]),
        "task_file": str(scratch_dir / "task.json"),
        "result_file": str(scratch_dir / RESULT),
        "persona": worker.persona,
        "persona_file": str(scratch_dir / "persona.md"),
        "prompt_file": str(scratch_dir / "prompt.md"),
        "system_prompt": config.definition.system_prompt if config.definition else "",
        "system_prompt_file": str(scratch_dir / definition.SYSTEM_PROMPT),
        "scratch": str(scratch_dir),
        "worktree": str(config.box.inside(cwd.resolve())),
        "project": str(config.project),
        "agent_id": worker.agent_id,
        "function": config.function or "",
        "caller": run_function.__file__,
        "python": sys.executable,
        "url": config.url,
        "mcp_url": config.mcp_url,
        "previous": last_attempt,
    }
    prompt = rules.fill(config.profile.prompt or "{description}", values)
    if task.get("note"):
        prompt = f"{prompt}\n\n{task['note']}"
    values["prompt"] = definition.prefixed(prompt, config.definition, config.profile)
    if worker.token:
        values |= {"token": worker.token, "mcp_config": str(scratch_dir / "mcp.json")}
    return values


def _environment(
    worker: Worker, task: Mapping[str, Any], box: Box, values: Mapping[str, str], added: Configuration
) -> dict[str, str]:
    config, profile = worker.config, worker.config.profile
    task_json = json.dumps(task)
    contract = {
        "WORKBENCH_TASK_ID": str(task["id"]),
        "WORKBENCH_ATTEMPT": str(task["attempt"]),
        "WORKBENCH_AGENT": worker.agent_id,
        "WORKBENCH_TASK_FILE": values["task_file"],
        "WORKBENCH_RESULT": values["result_file"],
        "WORKBENCH_PERSONA": values["persona_file"],
        "WORKBENCH_PROJECT": str(config.project),
        "WORKBENCH_URL": config.url,
    }
    if len(task_json) <= VARIABLE_LIMIT:
        contract["WORKBENCH_TASK"] = task_json
    of_profile = {name: rules.fill(text, values) for name, text in profile.environment.items()}
    of_agent = (
        author(worker.agent_id).environment()
        | person.passed(profile, worker.models)
        | dict(added.environment)
        | dict(config.environment)
    )
    return preceded(box.environment(os.environ) | of_agent | contract | of_profile, worker.python_path)


def _copy(profile: rules.Profile, scratch_dir: Path, models: ModelAccess | None) -> None:
    for source in person.copied(profile, models):
        target = scratch_dir / source.relative_to(home())
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o600)


def _success(config: WorkerConfig, scratch_dir: Path, said: str, mask: Mask) -> AttemptOutcome:
    """The outcome of a command that ended well, with the result that it wrote, which is not trusted.

    Args:
        said: its answer, if its program tells that from its other output; else the end of its output.
    """
    try:
        content = scratch.read(scratch_dir, RESULT, RESULT_LIMIT)
        return _succeed_without_result(config, scratch_dir, said, mask) if content is None else _parse_answer(content)
    except (OSError, ValueError, RecursionError) as error:
        return AttemptOutcome(False, error=f"The result file cannot be used: {error}.", retryable=False)


def _succeed_without_result(config: WorkerConfig, scratch_dir: Path, said: str, mask: Mask) -> AttemptOutcome:
    profile = config.profile
    text = said if profile.stream or profile.answer == "output" else ""
    if profile.answer_file:
        text = command.as_text(scratch.read(scratch_dir, profile.answer_file, RESULT_LIMIT) or b"") or text
    answer = _fitting(mask.text(text).strip(), config.result_bytes)
    return AttemptOutcome(True, {"answer": answer} if answer else None)


def _fitting(text: str, limit: int) -> str:
    """The end of a text whose JSON has no more than `limit` bytes, with room for what is around it."""
    while (size := len(json.dumps(text, ensure_ascii=False).encode())) > max(limit - ANSWER_FRAME, 0):
        text = text[-(len(text) * max(limit - ANSWER_FRAME, 0) // size) :][1:]
    return text


def _parse_answer(content: bytes) -> AttemptOutcome:
    """The answer of a command: an envelope, or the result itself, which is any other object."""
    decoded = json.loads(content.decode("utf-8-sig"))
    if not isinstance(decoded, dict):
        raise ValueError("it is not an object")
    left_out: list[str] = []
    answer = _replace_non_finite(decoded, "", left_out)
    json_safety.check(answer)
    notes = (f"[the result has {', '.join(left_out)}, which JSON cannot say: null is recorded]",) if left_out else ()
    if not answer.keys() <= _ENVELOPE:
        return AttemptOutcome(True, answer, notes=notes)
    named, result = answer.get("artifacts", []), answer.get("result")
    if not (isinstance(named, list) and all(isinstance(item, str) and item for item in named)):
        raise ValueError("artifacts is not a list of names")
    if "metrics" in answer:
        fields = result if isinstance(result, dict) else {} if result is None else {"result": result}
        result = {**fields, "metrics": answer["metrics"]}
    return AttemptOutcome(True, result, tuple(named), notes=notes)


def _replace_non_finite(value: Any, place: str, left_out: list[str]) -> Any:
    """A JSON value with null for each NaN or infinity; `left_out` collects their places."""
    match value:
        case float() if not math.isfinite(value):
            left_out.append(f"{place} = {value}")
            return None
        case dict():
            return {
                key: _replace_non_finite(item, f"{place}.{key}" if place else key, left_out)
                for key, item in value.items()
            }
        case list():
            return [_replace_non_finite(item, f"{place}[{index}]", left_out) for index, item in enumerate(value)]
    return value
