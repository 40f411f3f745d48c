"""`define trust`: what a definition needs the user's trust for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.definitions.group import define, done, target
from workbench.cli.output import Shown, pass_client
from workbench.present.tables import Table

NEEDS = {"kind": "kind", "summary": "what", "trusted": "trusted"}


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
    found = client.call("agent_request_trust" if ask else "agent_get_trust", agentTarget=target)
    return Table.of(found["needs"], NEEDS, "It needs trust for nothing.", found, _next_step(found))


def _next_step(found: Mapping[str, Any]) -> str:
    if found["trusted"]:
        return ""
    if found["approvalId"] is not None:
        return f"To trust it, run `workbench approve {found['approvalId']}`."
    return f"You refused it: {found['refusal']}" if found["refusal"] else "--ask opens the question."
