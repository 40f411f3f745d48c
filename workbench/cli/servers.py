"""The project itself, and programs that run in this terminal: `init`, `serve`, `mcp`, `demo`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, pass_client


@root.command()
@pass_client
def init(client: OperatorClient) -> Shown:
    """Make this directory a project, unless it is one."""
    client.create_project()
    project = client.settings.project
    return Note(f"{project} is a project. Its state is in {client.settings.home}.", {"project": str(project)})


@root.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=None, help="0 lets the system choose.")
@click.option(
    "--end-workers",
    is_flag=True,
    help="End the agents' processes, an earlier server's and its own; default: keep them.",
)
@pass_client
def serve(client: OperatorClient, port: int | None, end_workers: bool) -> Shown:
    """Run the servers without a notebook, until Ctrl-C. Agents' processes go on; the next server takes them back."""
    from workbench.shells.headless import run

    run(client.settings, port, end_workers=end_workers)
    return None


@root.command()
@pass_client
def mcp(client: OperatorClient) -> Shown:
    """Serve MCP on standard input and output. For agents that start their own MCP server."""
    from workbench.shells.mcp.stdio import run

    run(client.settings, os.environ.get("WORKBENCH_TOKEN"))
    return None


@root.command()
@click.option("--repo", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Your git repository.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Your plan.")
@click.option(
    "--workers", type=click.IntRange(1, 32), default=3, show_default=True, help="Worker processes at the same time."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-output"),
    help="Where to save the results.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def demo(repo: Path | None, plan_file: Path | None, workers: int, output: Path, as_json: bool) -> Shown:
    """Run the quickstart notebook, from plan to merge."""
    from workbench.demo import run

    return run(repo, plan_file, workers, output)
