"""`define`: validate, history, diff, analytics, export, import."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.definitions.group import DefinitionTarget, define, done, new_path, read_text, target, text_file
from workbench.cli.output import Note, PartialFailure, Shown, Text, drop_none, output_unwritable, pass_client
from workbench.present.tables import Table

PROBLEMS = {"severity": "severity", "place": "where", "message": "what"}
FIGURES = {
    "hash": "version",
    "starts": "starts",
    "tasks": "tasks",
    "attempts": "attempts",
    "completed": "completed",
    "failed": "failed",
    "givenUp": "given up",
    "running": "running",
    "medianSeconds": "median s",
    "toolCalls": "tool calls",
    "failedToolCalls": "failed calls",
}
VERSIONS = {
    "at": "at",
    "contentHash": "version",
    "source": "source",
    "commit": "commit",
    "by": "by",
    "summary": "what",
}


@define.command("validate")
@target
@pass_client
def validate(client: OperatorClient, target: str) -> Shown:
    """Check a definition: what is wrong in it, and what is missing. Exit status 1 if it is not valid."""
    found = client.call("agent_validate", agentTarget=target)
    rows = [{**one, "place": _place(one)} for one in found["problems"]]
    if not found["valid"]:
        shown = Table.of(rows, PROBLEMS, "", found)
        return PartialFailure(shown.columns, shown.rows, data=found)
    return Table.of(rows, PROBLEMS, "Nothing is wrong or missing.", found)


def _place(problem: Mapping[str, Any]) -> str:
    line = problem["line"]
    return f"{problem['place']}, line {line}" if line else str(problem["place"])


@define.command("history")
@target
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="At most this many.")
@pass_client
def list_versions(client: OperatorClient, target: str, limit: int) -> Shown:
    """List the versions of a definition, newest first: recorded changes, and commits of git."""
    found = client.call("agent_history", agentTarget=target, limit=limit)
    rows = [{**one, "commit": (one["commit"] or "")[:12]} for one in found["versions"]]
    return Table.of(rows, VERSIONS, "No version is recorded.", found, found["message"] or "")


@define.command("diff")
@target
@click.argument("other", required=False, metavar="[OTHER]", type=DefinitionTarget())
@click.option(
    "--from", "fromVersion", metavar="VERSION", default=None, help="A version or commit of `history`, or HEAD."
)
@click.option("--to", "toVersion", metavar="VERSION", default=None, help="The same; by default the files as they are.")
@pass_client
def diff(client: OperatorClient, target: str, other: str | None, **versions: Any) -> Shown:
    """Print what changed in a definition since the last commit or version, or how OTHER differs from it."""
    found = client.call("agent_diff", agentTarget=target, **drop_none(otherAgent=other, **versions))
    if found["equal"]:
        return Note("They do not differ.", found)
    return Text("\n".join(_patch(one) for one in found["changes"]), found)


def _patch(change: Mapping[str, Any]) -> str:
    patch = change["patch"]
    return str(patch).rstrip("\n") if patch is not None else f"{change['path']}: {change['status']}; too long to show"


@define.command("analytics")
@target
@click.option("--since", metavar="TIME", default=None, help="Only what was begun from then on (ISO 8601).")
@pass_client
def show_analytics(client: OperatorClient, target: str, since: str | None) -> Shown:
    """Show what the agents of a definition have done, by version: attempts, failures, durations."""
    found = client.call("agent_analytics", agentTarget=target, **drop_none(since=since))
    rows = [{**one, "hash": f"{one['hash']}{' (current)' if one['isCurrent'] else ''}"} for one in found["versions"]]
    total = f"{found['attempts']} attempts at {found['tasks']} tasks, {found['totalSeconds']} s in all"
    return Table.of(rows, FIGURES, "No agent has worked with it.", found, total)


@define.command("export")
@target
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead.")
@pass_client
def export_definition(client: OperatorClient, target: str, output: Path | None) -> Shown:
    """Print a definition as one file, without its secrets, or save it; `import` reads it."""
    found = client.call("agent_export", agentTarget=target)
    if output is None:
        return Text(found["content"].rstrip("\n"), found)
    try:
        output.write_text(found["content"], "utf-8")
    except OSError as error:
        raise output_unwritable(str(output), error) from None
    left_out = [f"{one['place']} is left out; the file refers to {one['reference']}." for one in found["secrets"]]
    return Note("\n".join([f"Saved {target} to {output}.", *left_out]), found)


@define.command("import")
@click.argument("file", type=text_file)
@click.argument("name")
@click.option("--path", default=None, help="Its directory; by default ./agents/NAME.")
@pass_client
def import_definition(client: OperatorClient, file: Path, name: str, path: str | None) -> Shown:
    """Create a definition from a file that `export` saved (- is stdin)."""
    where = path or new_path(name)
    return done(client.call("agent_import", agentPath=where, content=read_text(file), newName=name))
