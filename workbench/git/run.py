"""Runs git with fixed settings and variables, a time limit, and errors with codes."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol

from workbench.errors import BadInput, Unavailable
from workbench.rules.secrets.forms import masked_by_form
from workbench.system import uninterrupted

OLDEST = (2, 38)
_VERSION_SECONDS = 10.0
"""The first version with `git merge-tree --write-tree`."""

PATCH_FREE = ("--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=none", "-z")
"""Options that make `diff-tree` report every change, and run no other program."""

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.safecrlf=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "i18n.commitEncoding=UTF-8",
    "maintenance.auto=false",
    "submodule.recurse=false",
)


def _as_options(settings: Sequence[str]) -> list[str]:
    return [part for setting in settings for part in ("-c", setting)]


_GIT = ("git", "--no-pager", *_as_options(_SETTINGS))
_LAST_STATUS = 128
"""Above that a shell reports signals."""
_OF_THE_MACHINE = {
    ("No space left on device", "Disk quota exceeded"): " Free space on the disk, then try again.",
    ("Resource temporarily unavailable", "Cannot allocate memory"): " The machine is busy. Try again.",
}
_CHUNK = 1 << 16
_MAX_STDERR = 1 << 20

Wrap = Callable[[Sequence[str]], list[str]]
"""Wraps a command line in one that confines it; `list` confines nothing."""


class Running(Protocol):
    """A command with pipes for its output; a `subprocess.Popen` is one."""

    @property
    def args(self) -> Any: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    @property
    def stderr(self) -> IO[bytes] | None: ...
    def wait(self, timeout: float | None = None) -> int: ...


class Start(Protocol):
    """Starts a command line; the command has ended when the block ends, and an error in the block ends it."""

    def __call__(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: BinaryIO
    ) -> AbstractContextManager[Running]: ...


class _TooLong(Exception):
    """Ends a command that wrote more than it may."""


start_alone: Start = partial(uninterrupted.started, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@dataclass(frozen=True, slots=True)
class Bound:
    """How many bytes git may write before it is stopped (None: unlimited), and the file for them (None: memory)."""

    size: int | None = None
    into: BinaryIO | None = None


UNBOUND = Bound()


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """The author and committer of a commit.

    Raises:
        BadInput: ``BAD_IDENTITY``: git would reduce the name to nothing.
    """

    name: str
    email: str

    def __post_init__(self) -> None:
        if not re.search(r"[^\x00-\x20.,:;<>\"\\']", self.name) or "\0" in self.name + self.email:
            raise BadInput("BAD_IDENTITY", f"{self.name[:80]!r} cannot be the author of a commit. Use a name.")

    def environment(self) -> dict[str, str]:
        """The variables that make git use this identity instead of the configured one."""
        roles = ("GIT_AUTHOR", "GIT_COMMITTER")
        return {f"{role}_NAME": self.name for role in roles} | {f"{role}_EMAIL": self.email for role in roles}


NOBODY = CommitIdentity("Workbench", "workbench@localhost").environment()
"""The identity in reflog entries when none is given, so that none has to be configured."""


@dataclass(frozen=True, slots=True)
class GitResult:
    """The result of a git command that ended, or was stopped because it wrote too much (`cut`)."""

    command: str
    code: int
    out: bytes
    err: str
    cut: bool = False

    @property
    def text(self) -> str:
        """The output without its last newline, usable as an argument."""
        return os.fsdecode(self.out.removesuffix(b"\n"))

    @property
    def fields(self) -> list[bytes]:
        """The fields of output written with ``-z``."""
        return self.out.split(b"\0")[:-1]

    @property
    def references(self) -> dict[str, str]:
        """The object of each reference, of lines with an id and a name."""
        rows = (os.fsdecode(row).partition(" ") for row in self.out.split(b"\n") if row)
        return {name: id_ for id_, _, name in rows}

    @property
    def was_disturbed(self) -> bool:
        """Whether the machine made it fail: it was killed, or a resource ran out. Its result then means nothing."""
        return not 0 <= self.code <= _LAST_STATUS or bool(self.code and _advice(self.err))

    def expect(self, ok: Container[int] | None) -> GitResult:
        """Return itself if the exit code is one of `ok` (None: any) and the machine did not make it fail.

        Raises:
            Unavailable: ``GIT_FAILED``, also if it was cut (unless `ok` is None).
        """
        if ok is None or (self.code in ok and not self.cut and not self.was_disturbed):
            return self
        raise self.failure()

    def failure(self) -> Unavailable:
        """The error with git's message, and advice if the machine is to blame; secrets, as in URLs, are masked."""
        stderr = masked_by_form(self.err)
        lines = stderr.splitlines()
        reasons = [line for line in lines if line.startswith(("fatal:", "error:"))]
        if self.cut:
            reasons = ["its output is too long"]
        advice = _advice(self.err) or _exception(self.err)
        if self.was_disturbed and not self.cut:
            advice = advice or " It was ended from outside. Try again."
        return Unavailable(
            "GIT_FAILED",
            f"git {self.command} failed: {(reasons or lines or [f'exit code {self.code}'])[0]}{advice and '.'}{advice}",
            stderr=stderr[-4000:],
            exit_code=self.code,
            **({"try_again": True} if self.was_disturbed else {}),
        )


@contextmanager
def machine_faults() -> Iterator[None]:
    """Raise ``GIT_FAILED`` where files of a repository cannot be written, as where git itself cannot write them."""
    try:
        yield
    except OSError as error:
        raise _failure_of_machine("The files of a repository cannot be read or written", error) from error


def _failure_of_machine(what: str, error: OSError) -> Unavailable:
    return Unavailable("GIT_FAILED", f"{what}: {error}.{_advice(str(error))}", stderr=str(error), try_again=True)


def run(
    arguments: Sequence[str],
    cwd: Path,
    extra: Mapping[str, str],
    limit: float,
    stdin: bytes | BinaryIO = b"",
    *,
    settings: Sequence[str] = (),
    base: Mapping[str, str] | None = None,
    wrap: Wrap = list,
    start: Start = start_alone,
    bound: Bound = UNBOUND,
    then: Sequence[Sequence[str]] = (),
) -> GitResult:
    """Run a git command in `cwd` with `extra` variables, for at most `limit` seconds.

    `settings` (``key=value``) override the configuration; `base` are the other variables (None: those of this
    process). A file as `stdin` is read from its current position. Each command in `then` runs if the one before it
    succeeded; all run in one shell, so that they are wrapped only once.

    Raises:
        Unavailable: ``GIT_TIMEOUT``, ``GIT_MISSING``, ``GIT_FAILED`` (it could not be started).
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env = {**(inherited if base is None else base), "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **extra}
    try:
        with ExitStack() as opened:
            source = opened.enter_context(_open_as_file(stdin)) if isinstance(stdin, bytes) else stdin
            os.lseek(source.fileno(), source.tell(), os.SEEK_SET)
            commands = [arguments, *then]
            argv = wrap(_join_commands([[*_GIT, *_as_options(settings), *command] for command in commands]))
            name = ", ".join(command[0] for command in commands)
            return _communicate(name, start(argv, cwd=cwd, env=env, stdin=source), limit, bound)
    except subprocess.TimeoutExpired:
        raise Unavailable(
            "GIT_TIMEOUT",
            f"git {arguments[0]} was stopped after {limit:g} s. Find out what slows it down (a filter, a "
            "slow disk), then try again.",
        ) from None
    except OSError as error:
        if isinstance(error, FileNotFoundError) and cwd.is_dir():
            raise Unavailable("GIT_MISSING", "git is not installed. Install git 2.38 or newer.") from None
        raise _failure_of_machine("git cannot run", error) from error


def _advice(error: str) -> str:
    """Advice on an error that the machine caused."""
    matches = (advice for reasons, advice in _OF_THE_MACHINE.items() if any(reason in error for reason in reasons))
    return next(matches, "")


def _exception(error: str) -> str:
    """The command that git names where it uses no repository of another user."""
    command = re.search(r"^\s*(git config --global --add safe\.directory .*)$", error, re.MULTILINE)
    return f" If you trust its owner, run `{command[1]}`." if command else ""


def _join_commands(commands: Sequence[Sequence[str]]) -> Sequence[str]:
    if len(commands) == 1:
        return commands[0]
    return ["/bin/sh", "-c", " && ".join(map(shlex.join, commands))]


@contextmanager
def _open_as_file(text: bytes) -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile() if text else Path(os.devnull).open("rb+") as file:
        file.write(text)
        file.seek(0)
        yield file


def _communicate(name: str, starting: AbstractContextManager[Running], limit: float, bound: Bound) -> GitResult:
    # Not subprocess.run: at the time limit it kills git outright, which leaves index.lock behind, and
    # then waits for the filters that git has started.
    deadline = time.monotonic() + limit
    with suppress(_TooLong), starting as process:
        output = _read_output(process, deadline, limit, bound)
        if output.cut:
            raise _TooLong
        process.wait(max(deadline - time.monotonic(), 0.01))
    return GitResult(name, process.wait(), bytes(output.out), output.err.decode("utf-8", "replace"), output.cut)


@dataclass(slots=True)
class _Output:
    """The output of a process so far."""

    bound: Bound
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    size: int = 0
    cut: bool = False

    def add_stdout(self, chunk: bytes) -> None:
        """Keep as much of its standard output as `bound` allows."""
        kept = chunk if self.bound.size is None else chunk[: self.bound.size - self.size]
        self.size += len(kept)
        self.cut = len(kept) < len(chunk)
        if self.bound.into is None:
            self.out += kept
        else:
            self.bound.into.write(kept)

    def add_stderr(self, chunk: bytes) -> None:
        """Keep the beginning of its standard error."""
        self.err += chunk[: _MAX_STDERR - len(self.err)]


def _read_output(process: Running, deadline: float, limit: float, bound: Bound) -> _Output:
    """Read its output until it has closed both pipes or has written more than `bound` allows."""
    output = _Output(bound)
    with selectors.DefaultSelector() as pipes:
        for pipe, add in ((process.stdout, output.add_stdout), (process.stderr, output.add_stderr)):
            pipes.register(pipe or -1, selectors.EVENT_READ, add)
        while pipes.get_map() and not output.cut:
            if time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(process.args, limit)
            for key, _ in pipes.select(deadline - time.monotonic()):
                if chunk := os.read(key.fd, _CHUNK):
                    key.data(chunk)
                else:
                    pipes.unregister(key.fileobj)
    return output


def git_version() -> str:
    """What git says it is; empty if there is none."""
    try:
        return run(["version"], Path("/"), {}, _VERSION_SECONDS).text.removeprefix("git version ")
    except Unavailable:
        return ""


def check_version(limit: float) -> None:
    """Refuse a git that is missing or too old.

    Raises:
        Unavailable: ``GIT_MISSING``, ``GIT_TOO_OLD``.
    """
    text = run(["version"], Path("/"), {}, limit).expect((0,)).text
    if tuple(map(int, re.findall(r"\d+", text)[:2])) < OLDEST:
        raise Unavailable("GIT_TOO_OLD", f"This is {text}. Install git 2.38 or newer.", found=text)


def displayed(name: bytes) -> str:
    """A path or name from git as text that is safe in JSON."""
    return name.decode("utf-8", "backslashreplace")


def as_message(text: str) -> bytes:
    """A commit message for git's standard input."""
    return text.replace("\0", "").strip().encode("utf-8", "replace") + b"\n"
