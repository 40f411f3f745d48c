"""Programs that run in this terminal: `serve`, `mcp`, `demo`; and servers without one: `start`, `stop`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.cli.client import OperatorClient, ProjectClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, NounGroup, PartialFailure, Shown, pass_client
from workbench.errors import Unavailable
from workbench.present.tables import Table

if TYPE_CHECKING:
    from workbench.demo import DemoRun
    from workbench.execution.account import Account


@root.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=None, help="0 lets the system choose.")
@click.option(
    "--end-workers",
    is_flag=True,
    help="End the agents' processes, an earlier server's and its own; default: keep them.",
)
@click.option("--detached", is_flag=True, hidden=True, help="Marks the process that `start` starts.")
@pass_client
def serve(client: OperatorClient, port: int | None, end_workers: bool, detached: bool) -> Shown:
    """Run the servers without a notebook, until Ctrl-C. Agents' processes go on; the next server takes them back."""
    from workbench.shells.headless import run

    run(client.settings, port, end_workers=end_workers)
    return None


@root.command()
@click.option("--detach", is_flag=True, help="In a process of their own, as always here; in a notebook it is a choice.")
@click.option("--port", type=click.IntRange(0, 65_535), default=None, help="0 lets the system choose.")
@click.option("--end-workers", is_flag=True, help="End the agents' processes that an earlier server left.")
@click.option("--on-boot", is_flag=True, help="Also have them start with the machine, by a unit of your systemd.")
@pass_client
def start(client: OperatorClient, detach: bool, port: int | None, end_workers: bool, on_boot: bool) -> Shown:
    """Run the servers in a process of their own, which goes on when this terminal closes. `workbench stop` ends it."""
    from workbench.shells import detached
    from workbench.shells import on_boot as boot

    client.require_operator("start")
    says = [boot.enable(client.settings, port)] if on_boot else []
    server = detached.start(client.settings, port, end_workers=end_workers)
    return Note(" ".join([detached.said(client.settings, server), *says]), server.info.model_dump())


@root.command()
@click.option("--end-workers", is_flag=True, help="Also end the agents' processes; default: keep them.")
@click.option("--on-boot", is_flag=True, help="Also have them start with the machine no more.")
@pass_client
def stop(client: OperatorClient, end_workers: bool, on_boot: bool) -> Shown:
    """End the servers that `start --detach` started. If notebooks use the project, one of them then serves it."""
    from workbench.shells import detached
    from workbench.shells import on_boot as boot

    client.require_operator("stop")
    says = []
    if on_boot:
        undone = boot.disable(client.settings)
        says = ["It does not start with the machine any more." if undone else "It did not start with the machine."]
    server = detached.stop(client.settings, end_workers=end_workers)
    stopped = "No server was running." if server is None else f"The server (process {server.pid}) has stopped."
    return Note(" ".join([stopped, *says]), {"stopped": server and server.pid})


@root.group(cls=NounGroup)
def servers() -> None:
    """The project's servers, each with its machine."""


@root.group(cls=NounGroup)
def machines() -> None:
    """Machines without a clone of the project: those whose token enlists workers, and those of the settings."""


@root.command()
@pass_client
def mcp(client: OperatorClient) -> Shown:
    """Serve MCP on standard input and output. For agents that start their own MCP server."""
    from workbench.shells.mcp.bridge import run

    run(client.settings, os.environ.get("WORKBENCH_TOKEN"))
    return None


@root.command()
@click.option("--repo", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Your git repository.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Your plan.")
@click.option(
    "--workers", type=click.IntRange(1, 32), default=3, show_default=True, help="Worker processes at the same time."
)
@click.option("--check", default="", metavar="COMMAND", help="Command that must pass on the merged result.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-output"),
    help="Where to save the results.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def demo(repo: Path | None, plan_file: Path | None, workers: int, check: str, output: Path, as_json: bool) -> Shown:
    """Run the quickstart notebook, from plan to merge. Run again on your repository, it goes on with what is left."""
    from workbench.demo import run
    from workbench.execution.account import account_of

    result = run(repo, plan_file, workers, check, output)
    if result.failure is not None:
        raise Unavailable("DEMO_FAILED", f"{result.failure} Open {result.notebook} for details.")
    again = f"workbench demo --repo {_quote(repo)}" if repo else "workbench demo"
    again += f" --plan {_quote(plan_file)}" if plan_file else ""
    with ProjectClient(Path(result.summary["project"])) as client:
        account = account_of(client.call, result.summary["plan"])
    return _account_table(result, account, _next_steps(account, result.summary["project"], again, own=repo is not None))


def _quote(path: Path) -> str:
    return shlex.quote(str(path))


def _next_steps(account: Account, project: str, again: str, *, own: bool) -> list[str]:
    """What to do now: a sentence and a command each."""
    here = f"workbench --project {shlex.quote(project)}"
    if account.is_done:
        if own:
            return [f"Everything is done and merged. To see it, run `git -C {shlex.quote(project)} log --stat`."]
        return ["Everything is done and merged. For your own work, run `workbench demo --repo PATH --plan FILE`."]
    steps = [
        f"To see why it waits, run `{here} approvals`; to merge it, `{here} approve {approval}`."
        for approval in account.waiting
    ]
    if account.failed:
        steps.append(f"For the log of a task, run `{here} task {account.failed[0]}`.")
    if account.failed and own:
        steps.append(
            f"Correct the plan, the repository or the settings, and run `{again}` again: it goes on with what is left."
        )
    if account.for_agents:
        steps.append(
            f"For what has no command, connect an agent: run `{here} serve`, and `{here} connect` in another terminal."
        )
    return steps or [f"To see what is left, run `{here} tasks`."]


def _account_table(result: DemoRun, account: Account, steps: list[str]) -> Table:
    facts = result.summary
    took = f"{facts['wall_seconds']:g} s, {facts['attempts']} attempts, {facts['agents']} agents."
    note = "\n".join(
        [*account.notes, took, f"The executed notebook is {result.notebook}, and as a page {result.page}.", *steps]
    )
    data = {
        **facts,
        "notebook": str(result.notebook),
        "html": str(result.page),
        "pictures": result.pictures,
        "account": account.as_data(),
        "next": steps,
    }
    shape = Table if account.is_done else PartialFailure
    return shape(
        ["task", "title", "state", "worktree", "outcome"], account.rows, "", data, note=note, lead=account.headline
    )
