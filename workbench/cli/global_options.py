"""The root command, whose errors speak of commands, and the options `--project` and `--json` of all commands."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import click

from workbench.analytics.questions import ended_by_interrupt
from workbench.cli.client import ProjectClient
from workbench.errors import WorkbenchError
from workbench.model import __version__
from workbench.rules.wording import error_in_commands

AnyCommand = TypeVar("AnyCommand", bound=click.Command)


def choose_project(ctx: click.Context, project: Path | None) -> None:
    """Have the command work in a project, unless an earlier option has chosen one and this has none."""
    if project is not None or ctx.obj is None:
        ctx.obj = ctx.with_resource(ProjectClient(project, os.environ.get("WORKBENCH_TOKEN")))


def _choose(ctx: click.Context, _: click.Parameter, project: Path | None) -> None:
    choose_project(ctx, project)


def _note_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[JSON] = value or ctx.meta.get(JSON, False)


JSON = f"{__name__}.json"
"""Whether data is to be printed, for commands that print something before they end: `ctx.meta[JSON]`."""
OPTIONS = (
    click.Option(
        ["--project"],
        type=click.Path(path_type=Path, file_okay=False),
        expose_value=False,
        callback=_choose,
        help="Root directory of the project.",
    ),
    click.Option(
        ["--json"], is_flag=True, expose_value=False, callback=_note_json, help="Print data instead of tables."
    ),
)


SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "Begin": (
        "init",
        "demo",
        "run",
        "account",
        "schedules",
        "start",
        "serve",
        "status",
        "servers",
        "machines",
        "panel",
        "stop",
        "doctor",
        "keys",
        "disk",
        "backup",
        "restore",
        "vacuum",
        "db",
    ),
    "Decide": ("approvals", "proposed", "approve", "reject", "answer", "request-changes", "integrate"),
    "Talk": ("tell", "comment", "messages"),
    "Plans and tasks": (
        *("plan", "plans", "export-plan", "tasks", "task", "graph", "edit", "assign", "priority", "retry", "reopen"),
        *("cancel", "depend"),
        "adopt",
    ),
    "Agents": (
        *(
            "agents",
            "agent",
            "spawn",
            "ps",
            "logs",
            "restart",
            "terminate",
            "holds",
            "budgets",
            "resources",
            "personas",
            "define",
            "profiles",
        ),
    ),
    "Worktrees": ("worktrees", "discard", "box"),
    "Experiments": ("runs", "sweep"),
    "Questions": (
        "costs",
        "estimate",
        "transcript",
        "report",
        "sql",
        "views",
        "events",
        "history",
        "notifications",
        "export",
        "import",
        "performance",
        "telemetry",
    ),
    "Chat and tools": ("chat", "conversations", "tools", "koi", "personalities"),
    "Admission and access": (
        *("rules", "allowlist", "grant", "revoke", "agent-tools", "token", "connect", "trust"),
        *("projects", "sessions", "teams", "move", "contexts"),
    ),
    "For programs": ("call", "mcp", "worker", "migrate"),
}
"""The headings of the help of `workbench`, with the commands below each: what is used most comes first."""
OTHERS = "Others"
"""The heading of the commands that belong to no subject."""


def by_subject(names: Collection[str]) -> Mapping[str, list[str]]:
    """The commands with these names under their headings, in the order above; those of no subject come last."""
    sections = {subject: [name for name in all_names if name in names] for subject, all_names in SUBJECTS.items()}
    placed = {name for all_names in sections.values() for name in all_names}
    sections[OTHERS] = sorted(name for name in names if name not in placed)
    return {subject: below for subject, below in sections.items() if below}


class CommandGroup(click.Group):
    """Commands whose errors speak of commands, and whose help lists them by subject. `help COMMAND` is
    `COMMAND --help`."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See `click.Group.format_commands`."""
        width = formatter.width - 6 - max(map(len, self.commands), default=0)
        for subject, names in by_subject(self.commands).items():
            with formatter.section(subject):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(width)) for name in names])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Group.parse_args`."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)

    def invoke(self, ctx: click.Context) -> Any:
        """See `click.Command.invoke`."""
        try:
            return super().invoke(ctx)
        except WorkbenchError as error:
            command = self.commands.get(ctx.invoked_subcommand or "")
            if command is None or command.name == "call":
                raise
            raise reworded(error, ctx.info_name or "workbench", command) from error
        except KeyboardInterrupt as interrupt:  # click would also print an empty line
            raise click.Abort from interrupt
        except RuntimeError as error:
            if not ended_by_interrupt(error):
                raise
            raise click.Abort from error


def reworded(error: WorkbenchError, program: str, command: click.Command | None = None) -> WorkbenchError:
    """An error of an operation for who has typed a command: it names commands and options instead.

    Args:
        program: what commands begin with, such as ``workbench``.
        command: whose options were typed; None: none of them are named.
    """
    if command is not None and (problems := _problems(error)):
        options = _options(command)
        reasons = (f"{options.get(p['field'], p['field'])}: {p['reason']}" for p in problems[:5])
        return error.with_message("; ".join(reasons) + ".")
    return error_in_commands(error, program)


def _problems(error: WorkbenchError) -> list[dict[str, Any]]:
    """What is wrong with which argument, if that is what an error says."""
    problems = error.details.get("problems") if error.code == "INVALID_ARGUMENTS" else None
    return problems if isinstance(problems, list) and all(isinstance(one, dict) for one in problems) else []


def _options(command: click.Command) -> dict[str, str]:
    """How the arguments of a command, and of those below it, are typed, by the names that operations give them."""
    typed: dict[str, str] = {}
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        typed |= _options(below)
    for parameter in command.params:
        typed[parameter.name or ""] = (
            parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name
        )
    return typed


@click.group(cls=CommandGroup, params=[*OPTIONS], context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def root() -> None:
    """Run a team of AI agents from a Jupyter notebook."""


def with_global_options(command: AnyCommand) -> AnyCommand:
    """A copy of a command that has these options too, as all commands below it."""
    copied = copy(command)
    if isinstance(copied, click.Group):
        copied.commands = {name: with_global_options(inner) for name, inner in copied.commands.items()}
    else:
        taken = {name for parameter in command.params for name in parameter.opts}
        copied.params = [*command.params, *(option for option in OPTIONS if not taken & {*option.opts})]
    return copied
