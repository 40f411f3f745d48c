"""Runs commands in a hostile project, and reports what came of it.

Arguments: the directory of the `Hostile`, and the user to become. Reads a list of commands, and prints a JSON object
for each.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

import workbench
from tests.conftest import typed
from tests.project.hostile import Hostile
from workbench.cli import cli

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
            with suppress(FileNotFoundError):  # a server's temporary file has gone since it was listed
                entry = path.lstat()
                found[str(path)] = (entry.st_mode, entry.st_ino, entry.st_size, entry.st_mtime_ns)
    return found


def everything(*without: str) -> list[list[str]]:
    """A command line for every command, except for some."""
    named = {" ".join(path): command for path, command in commands(cli)}
    return [
        [*name.split(), *WORDS.get(name, arguments(command))] for name, command in named.items() if name not in without
    ]


def reports(made: Hostile, typing: list[list[str]]) -> Iterator[dict[str, Any]]:
    """Run commands one after the other; what each said and did."""
    watched = (made.project, made.victim, made.place / "home" / ".config")
    before = snapshot(*watched)
    for words in typing:
        signal.alarm(SECONDS)
        ran = typed(*words)
        signal.alarm(0)
        after = snapshot(*watched)
        changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        marks = sorted(path.name for path in made.marks.iterdir())
        yield {"words": words, "status": ran.status, "text": ran.out + ran.err, "changed": changed, "marks": marks}
        before = after


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
    wanted = json.load(sys.stdin)
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what programs write that commands run is no report
        for report in reports(hostile, wanted):
            print(json.dumps(report), file=answers, flush=True)
