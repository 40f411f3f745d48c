"""`define`: what a definition is, was and did: validate, history, diff, analytics, trust, schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.definitions.group import define, done, target
from workbench.cli.operations.declared import view
from workbench.cli.output import Note, PartialFailure, Shown, Text, drop_none, pass_client
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
NEEDS = {"kind": "kind", "summary": "what", "trusted": "trusted"}
FILES = ("agent.yaml", "front-matter")
VERSIONS = {
    "at": "at",
    "contentHash": "version",
    "source": "source",
    "commit": "commit",
    "by": "by",
    "summary": "what",
}


@view("CompletenessReport")
def problem_table(report: Mapping[str, Any]) -> Table:
    """The problems of a definition, the worst first."""
    rows = [{**problem, "place": _place(problem)} for problem in report["problems"]]
    table = Table.of(rows, PROBLEMS, "Nothing is wrong or missing.", report)
    return table if report["valid"] else PartialFailure(table.columns, table.rows, data=report)


def _place(problem: Mapping[str, Any]) -> str:
    line = problem["line"]
    return f"{problem['place']}, line {line}" if line else str(problem["place"])


@define.command("history")
@target
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="At most this many.")
@pass_client
def list_versions(client: OperatorClient, target: str, limit: int) -> Shown:
    """List the versions of a definition, newest first: recorded changes, and commits of git."""
    answer = client.call("agent_history", agentTarget=target, limit=limit)
    rows = [{**version, "commit": (version["commit"] or "")[:12]} for version in answer["versions"]]
    return Table.of(rows, VERSIONS, "No version is recorded.", answer, answer["message"] or "")


@define.command("diff")
@target
@click.argument("other", required=False, metavar="[OTHER]", type=offers.definition)
@click.option(
    "--from", "fromVersion", metavar="VERSION", default=None, help="A version or commit of `history`, or HEAD."
)
@click.option("--to", "toVersion", metavar="VERSION", default=None, help="The same; by default the files as they are.")
@pass_client
def diff(client: OperatorClient, target: str, other: str | None, **versions: Any) -> Shown:
    """Print what changed in a definition since the last commit or version, or how OTHER differs from it."""
    answer = client.call("agent_diff", agentTarget=target, **drop_none(otherAgent=other, **versions))
    if answer["equal"]:
        return Note("They do not differ.", answer)
    return Text("\n".join(_patch(change) for change in answer["changes"]), answer, is_diff=True)


@define.command("restore")
@target
@click.option("--version", required=True, metavar="VERSION", help="A version or commit of `history`, or HEAD.")
@pass_client
def restore(client: OperatorClient, target: str, version: str) -> Shown:
    """Give a definition back what a version of it said. Where that has a masked secret, the present one stays."""
    return done(client.call("agent_restore", agentTarget=target, version=version))


def _patch(change: Mapping[str, Any]) -> str:
    patch = change["patch"]
    return str(patch).rstrip("\n") if patch is not None else f"{change['path']}: {change['status']}; too long to show"


@view("Analytics")
def figure_table(answer: Mapping[str, Any]) -> Table:
    """The work of a definition's agents, by version."""
    rows = [
        {**version, "hash": f"{version['hash']}{' (current)' if version['isCurrent'] else ''}"}
        for version in answer["versions"]
    ]
    total = f"{answer['attempts']} attempts at {answer['tasks']} tasks, {answer['totalSeconds']} s in all"
    return Table.of(rows, FIGURES, "No agent has worked with it.", answer, total)


@define.command("trust")
@target
@click.option("--ask", is_flag=True, help="Ask for what is not trusted; `approve ID` then trusts it.")
@click.option("--revoke", is_flag=True, help="Trust nothing of it any more.")
@pass_client
def trust(client: OperatorClient, target: str, ask: bool, revoke: bool) -> Shown:
    """Show what a definition needs your trust for: programs, servers, secrets, permissions."""
    if ask and revoke:
        raise click.UsageError("Give --ask or --revoke, not both.")
    if revoke:
        return done(client.call("agent_revoke_trust", agentTarget=target))
    answer = client.call("agent_request_trust" if ask else "agent_get_trust", agentTarget=target)
    return Table.of(answer["needs"], NEEDS, "It needs trust for nothing.", answer, _next_step(answer))


def _next_step(answer: Mapping[str, Any]) -> str:
    if answer["trusted"]:
        return ""
    if answer["approvalId"] is not None:
        return f"To trust it, run `workbench approve {answer['approvalId']}`."
    return f"You refused it: {answer['refusal']}" if answer["refusal"] else "--ask opens the question."


@define.command("schema")
@click.argument("file", type=click.Choice(FILES), default=FILES[0])
@pass_client
def show_schema(client: OperatorClient, file: str) -> Shown:
    """Print the JSON Schema of agent.yaml, or of the front matter of rules and references, for editors."""
    schema = client.call("agent_get_schema", file=file)["jsonSchema"]
    return Text(json.dumps(schema, indent=2, ensure_ascii=False), schema)
