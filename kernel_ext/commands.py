"""The commands of `%workbench`: those of the command line, and those that only a kernel has."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import click
from click.shell_completion import CompletionItem

from kernel_ext.chat import chat_command
from kernel_ext.objects.queries import sql_command
from kernel_ext.sweeps import sweep_command
from workbench import cli

NOT_HERE = {"serve", "start", "stop", "mcp", "demo", "sql", "token", "worker", "chat", "sweep"}
"""Commands that are not available in a kernel: they would block it, have their own magic or form, repeat `start`, or
print a secret that the notebook would store."""
PANEL_TABS = (
    "inbox",
    "tasks",
    "worktrees",
    "agents",
    "definitions",
    "tools",
    "chat",
    "runs",
    "analytics",
    "personalities",
    "projects",
    "admin",
)


class Startable(Protocol):
    """A notebook's session, as its commands use it."""

    def start(
        self, project: Path | None = None, port: int | None = None, *, end_workers: bool = False, detach: bool = False
    ) -> cli.Note:
        """Start the servers."""
        ...

    def stop(self, *, end_workers: bool = False) -> cli.Note:
        """Stop the servers."""
        ...

    def panel(self, tab: str = ..., *, alone: bool = ..., dock: bool = ...) -> Any:
        """Open the panel."""
        ...


def tree() -> click.Group:
    """The commands of the command line, plus those that only a kernel has."""
    group = cli.CommandGroup("workbench", context_settings={"help_option_names": ["-h", "--help"]})
    for command in cli.COMMANDS:
        if command.name not in NOT_HERE:
            group.add_command(command)
    for command in (start, stop, panel, chat_command, sql_command, sweep_command):
        group.add_command(command)
    return group


@click.command()
@click.option("--project", type=click.Path(path_type=Path, file_okay=False), help="Root directory of the project.")
@click.option("--port", type=int, default=None, help="0 lets the system choose.")
@click.option("--end-workers", is_flag=True, help="End the agents' processes that an earlier server left.")
@click.option("--detach", is_flag=True, help="In a process of their own, which a kernel restart does not end.")
@click.pass_obj
def start(session: Startable, project: Path | None, port: int | None, end_workers: bool, detach: bool) -> cli.Note:
    """Start the servers in this kernel, and take back the agents' processes that an earlier server left."""
    return session.start(project, port, end_workers=end_workers, detach=detach)


@click.command()
@click.option(
    "--end-workers", is_flag=True, help="Also end the agents' processes, unless other kernels use the project."
)
@click.pass_obj
def stop(session: Startable, end_workers: bool) -> cli.Note:
    """Stop the servers, unless other kernels use the project: one of them then serves it. Agents' processes go on
    working; the next start takes them back."""
    return session.stop(end_workers=end_workers)


def _tabs(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(tab) for tab in PANEL_TABS if tab.startswith(incomplete)]


@click.command()
@click.argument("tab", metavar="[TAB]", default="inbox", shell_complete=_tabs)
@click.option("--alone", is_flag=True, help="Only this tab.")
@click.option("--dock", is_flag=True, help="Beside the notebook, in JupyterLab; elsewhere in the cell.")
@click.pass_obj
def panel(session: Startable, tab: str, alone: bool, dock: bool) -> Any:
    """Show the panel, live, with a TAB first: inbox, tasks, worktrees, agents, definitions, tools, chat, runs,
    analytics, personalities, projects or admin."""
    return session.panel(tab, alone=alone, dock=dock)
