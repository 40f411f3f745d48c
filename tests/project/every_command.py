"""Runs every command of the CLI in a hostile project, each in a process of its own, and reports what came of it.

Arguments: the directory of the `Hostile`, the user to become, and commands to leave out. Prints a JSON object for each
command.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import pkgutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

import workbench
from tests.project.hostile import Hostile
from workbench.cli import cli, main

WORDS: Mapping[str, list[str]] = {
    "sql": ["SELECT 1"],
    "call": ["list_agents"],
    "plan": ["plan.yaml"],
    "personas save": ["README.md"],
    "migrate": ["--from", "plan.yaml"],
    "demo": ["--repo", ".", "--output", "../demo-output"],
    "worktrees run": ["lab", "--", "true"],
    "serve": ["--port", "0"],
}
"""Arguments of commands that would get no further with those that `arguments` makes up."""
SECONDS = 60


def commands(group: click.Group, *before: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with its path."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)
        else:
            yield (*before, name), command


def arguments(command: click.Command) -> list[str]:
    """Something for each parameter that a command requires."""
    made = []
    for parameter in command.params:
        if parameter.required:
            made += [parameter.opts[0]] if isinstance(parameter, click.Option) else []
            made.append(_value(parameter.type))
    return made


def _value(kind: click.ParamType) -> str:
    if isinstance(kind, click.Choice):
        return str(kind.choices[0])
    if isinstance(kind, click.Path | click.File):
        return "README.md"
    return "1" if isinstance(kind, click.types.IntParamType | click.types.FloatParamType) else "lab"


def snapshot(*places: Path) -> dict[str, object]:
    """Everything in some directories, with what a write would change."""
    found: dict[str, object] = {}
    for place in places:
        for path in (place, *place.rglob("*")) if place.exists() else ():
            entry = path.lstat()
            found[str(path)] = (entry.st_mode, entry.st_ino, entry.st_size, entry.st_mtime_ns)
    return found


def run(words: list[str]) -> tuple[int, str]:
    """Run a command in a fork; its exit status, or the signal as a negative number, and what it wrote."""
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        signal.alarm(SECONDS)
        with contextlib.suppress(OSError):
            os.close(0)
        for number in (1, 2):
            os.dup2(write, number)
        sys.stdin, sys.stdout, sys.stderr = io.StringIO(), os.fdopen(1, "w"), os.fdopen(2, "w")
        status = 1
        try:
            main(words)
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as output:
        text = output.read().decode("utf-8", "replace")
    _, ended = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(ended), text


def report(made: Hostile, words: list[str], home: Path) -> dict[str, object]:
    """Run one command; what it did."""
    watched = (made.project, made.victim, home / ".config")
    before = snapshot(*watched)
    began = time.monotonic()
    status, text = run(words)
    after = snapshot(*watched)
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    marks = sorted(path.name for path in made.marks.iterdir())
    seconds = round(time.monotonic() - began, 1)
    return {"words": words, "status": status, "text": text, "changed": changed, "marks": marks, "seconds": seconds}


def load_everything() -> None:
    """Import what commands would import, while this user may still read it."""
    for module in pkgutil.walk_packages(workbench.__path__, "workbench."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


if __name__ == "__main__":
    hostile, user = Hostile(Path(sys.argv[1])), int(sys.argv[2])
    load_everything()
    if user != os.geteuid():
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    os.chdir(hostile.project)
    for path, command in commands(cli):
        if " ".join(path) in sys.argv[3:]:
            continue
        words = [*path, *WORDS.get(" ".join(path), arguments(command))]
        print(json.dumps(report(hostile, words, Path(os.environ["HOME"]))), flush=True)
