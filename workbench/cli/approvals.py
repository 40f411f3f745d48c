"""The inbox: `approvals`, `approve`, `reject`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.grants import choices, grant_options, granted_text, session_text
from workbench.cli.integration import merge_lines
from workbench.cli.output import Note, PartialFailure, Shown, counted, pass_client
from workbench.errors import AWAY, BadInput, Conflict, NotFound, Unavailable, from_dict
from workbench.present.inert import inert_line
from workbench.present.tables import CellLines, Table, TablePage
from workbench.rules.personalities.addresses import node_label
from workbench.rules.wording import in_commands

TOOL_CALL, PEER_CALL = "tool_call", "peer_call"
TRUST = "trust"
"""The kind of approvals about what definitions need; `workbench approvals` shows it, so `--all` does not approve it."""
KINDS = ("registration", "integration", TRUST, TOOL_CALL, PEER_CALL)
ARGUMENTS = 200
"""Characters of a call's arguments that are shown; `--json` prints all."""
NONE_WAITS = "Nothing needs your approval."
DECIDED = 200
"""How many decided approvals are shown."""
MOST = 500
"""As many as an operation lists at once, and as registrations may wait by default."""


@root.command()
@click.option("--all", "everything", is_flag=True, help="Show decided ones too, the newest decision first.")
@pass_client
def approvals(client: OperatorClient, everything: bool) -> Shown:
    """List what needs your approval."""
    found = client.call("list_approvals", status="pending", limit=MOST)["approvals"]
    waiting = waiting_table(found, NONE_WAITS)
    if not everything:
        return waiting
    decided = client.call("list_decided_approvals", limit=DECIDED)["approvals"]
    shown = decided_table(decided, "No approval has been decided yet.")
    return TablePage([("Waiting", waiting), ("Decided", shown)], [*found, *decided])


def waiting_table(found: Sequence[Mapping[str, Any]], empty: str) -> Table:
    """Pending approvals, and what each is about."""
    rows = [[a["id"], a["kind"], _about(a), _origin(a), a["status"]] for a in found]
    return Table(["id", "kind", "about", "asked by", "status"], rows, empty, found)


def decided_table(found: Sequence[Mapping[str, Any]], empty: str) -> Table:
    """Approvals, and who decided them and why."""
    heads = ["id", "kind", "about", "asked by", "status", "by", "at", "reason"]
    rows = [
        [a["id"], a["kind"], _subject(a), a["requester"], a["status"], decider(a), a["decided_at"], a["reason"]]
        for a in found
    ]
    return Table(heads, rows, empty, found)


def decider(approval: Mapping[str, Any]) -> str:
    """The person who decided, by name, or else the rule or agent."""
    return str(approval["person"] or approval["decided_by"])


def _subject(approval: Mapping[str, Any]) -> str:
    payload = approval["payload"]
    if approval["kind"] == "registration":
        return str(payload["name"])
    if approval["kind"] == TRUST:
        return f"the definition {payload['definition']}"
    if approval["kind"] in (TOOL_CALL, PEER_CALL):
        return f"the tool {payload['tool']}"
    return f"{payload['worktree']} into {payload['target']}"


@root.command()
@click.argument("requests", metavar="[ID|NAME]...", nargs=-1, shell_complete=offers.approvals)
@click.option("--all", "everything", is_flag=True, help="All pending approvals, but for the kind trust.")
@click.option("--kind", type=click.Choice(KINDS), help="With --all: only of this kind.")
@click.option("--id", "agent_id", metavar="ID", default=None, help="The agent's id (one registration).")
@click.option("--despite-gates", is_flag=True, help="Merge although gates failed or are still running.")
@click.option(
    "--always",
    is_flag=True,
    help="Allow all calls of a tool, until its description or schema changes; or all calls of a trait by a node.",
)
@click.option("--no-wait", is_flag=True, help="Do not wait for the gates and the merge of what is queued.")
@grant_options
@pass_client
def approve(
    client: OperatorClient,
    requests: tuple[str, ...],
    everything: bool,
    kind: str | None,
    agent_id: str | None,
    despite_gates: bool,
    always: bool,
    no_wait: bool,
    **options: Any,
) -> Shown:
    """Approve requests: admit agents, merge worktrees, trust definitions, let tools be called. Name them by id, or by
    the agent, worktree, definition or tool they are about."""
    approval_ids = _chosen(client, requests, everything, kind, with_trust=False)
    if agent_id is not None and len(approval_ids) > 1:
        raise click.UsageError("An id is for one agent. Omit --id, or approve one by one.")
    chosen = choices(options, agent_id=agent_id) | ({"despite_gates": True} if despite_gates else {})
    chosen |= {"remember": "always"} if always else {}
    if len(approval_ids) == 1:
        made = client.call("approve", approval_id=approval_ids[0], choices=chosen)
        decisions = [{"approval_id": approval_ids[0], "ok": True, "outcome": made["outcome"]}]
    elif approval_ids:
        decisions = client.call("approve_many", approval_ids=list(approval_ids), choices=chosen)["decisions"]
    else:
        decisions = []
    if not no_wait:
        decisions = [settled(client.call, decision, lambda: client.find_server() is not None) for decision in decisions]
    if len(decisions) == 1 and not decisions[0]["ok"]:
        raise from_dict(decisions[0]["error"])
    return _decided(decisions)


@root.command()
@click.argument("requests", metavar="[ID|NAME]...", nargs=-1, shell_complete=offers.approvals)
@click.option("--all", "everything", is_flag=True, help="All pending approvals.")
@click.option("--kind", type=click.Choice(KINDS), help="With --all: only of this kind.")
@click.option("--reason", default="", help="Sent to the requester.")
@pass_client
def reject(client: OperatorClient, requests: tuple[str, ...], everything: bool, kind: str | None, reason: str) -> Shown:
    """Reject requests. Name them by id, or by the agent, worktree, definition or tool they are about."""
    approval_ids = _chosen(client, requests, everything, kind)
    if len(approval_ids) == 1:
        made = client.call("reject", approval_id=approval_ids[0], reason=reason)
        return Note(f"Rejected {approval_ids[0]}.", [made])
    if not approval_ids:
        return _decided([])
    return _decided(client.call("reject_many", approval_ids=list(approval_ids), reason=reason)["decisions"])


def _chosen(
    client: OperatorClient, requests: Sequence[str], everything: bool, kind: str | None, *, with_trust: bool = True
) -> tuple[int, ...]:
    """The ids of the approvals that a command is for. `with_trust`: `--all` means those of the kind trust as well."""
    if everything:
        found = client.call("list_approvals", kind=kind, limit=MOST)["approvals"]
        return tuple(a["id"] for a in found if a["kind"] != TRUST or with_trust or kind == TRUST)
    if not requests:
        raise click.UsageError("Give the ids of approvals, or --all. `workbench approvals` lists them.")
    if all(map(str.isdecimal, requests)):
        return tuple(map(int, requests))
    waiting = client.call("list_approvals", status="pending", limit=MOST)["approvals"]
    return tuple(int(name) if name.isdecimal() else pending_about(waiting, name) for name in requests)


def pending_about(waiting: Sequence[Mapping[str, Any]], name: str) -> int:
    """The pending approval about an agent, a worktree or a definition.

    Raises:
        NotFound: ``APPROVAL_NOT_FOUND``. BadInput: ``AMBIGUOUS_NAME``.
    """
    found = [approval["id"] for approval in waiting if name in _names(approval)]
    if not found:
        text = f"No request of {name!r} waits for a decision. `workbench approvals` lists those that wait."
        raise NotFound("APPROVAL_NOT_FOUND", text)
    if len(found) > 1:
        text = f"{len(found)} requests are about {name!r}: {', '.join(map(str, found))}. Give the id of one."
        raise BadInput("AMBIGUOUS_NAME", text, candidates=found)
    return int(found[0])


def _names(approval: Mapping[str, Any]) -> set[str | None]:
    payload = approval["payload"]
    if approval["kind"] == "registration":
        return {payload["name"], payload["suggested_id"], payload["agent_id"]}
    if approval["kind"] == TRUST:
        return {payload["definition"], payload["definition_id"], payload["path"]}
    if approval["kind"] in (TOOL_CALL, PEER_CALL):
        return {payload["tool"], payload["call_id"]}
    return {payload["worktree"], payload["branch"]}


def settled(
    call: Callable[..., Mapping[str, Any]], decision: dict[str, Any], is_served: Callable[[], bool]
) -> dict[str, Any]:
    """A decision once what was queued is merged or refused; while no server runs, it stays queued."""
    if not decision["ok"] or decision["outcome"].get("state") != "queued":
        return decision
    found: Mapping[str, Any] = {"settled": False}
    while not found["settled"]:
        if not is_served():  # it was stopped: the queue goes on when one runs again
            return decision
        try:
            found = call("get_approval", approval_id=decision["approval_id"], wait_seconds=20)
        except Unavailable as away:
            if away.code not in AWAY:
                raise
            return decision
    outcome = found["outcome"]
    if found["status"] == "approved":
        return {**decision, "outcome": outcome}
    why = {name: outcome[name] for name in ("code", "message", "details")}
    return {"approval_id": decision["approval_id"], "ok": False, "error": {**why, "status": Conflict.status}}


def _decided(decisions: list[dict[str, Any]]) -> Table:
    rows = [[d["approval_id"], _outcome_lines(d["outcome"]) if d["ok"] else _refusal(d["error"])] for d in decisions]
    shape = Table if all(d["ok"] for d in decisions) else PartialFailure
    return shape(["id", "outcome"], rows, "Nothing needs your approval.", decisions)


def _about(approval: Mapping[str, Any]) -> str:
    payload = approval["payload"]
    if approval["kind"] == "registration":
        session = session_text(payload["suggested_session"])
        wanted = f"{payload['suggested_id']} ({payload['persona_id'] or 'no persona'})"
        tools = f", with the tools {', '.join(payload['tools'])}" if payload.get("tools") else ""
        return f"{payload['name']} wants to be {wanted}, {session}{tools}"
    if approval["kind"] == TRUST:
        return f"{payload['definition']} needs trust: {'; '.join(need['summary'] for need in payload['needs'])}"
    if approval["kind"] in (TOOL_CALL, PEER_CALL):
        return _call(payload)
    asked = ["changes requested"] if approval["changes_requested_at"] and approval["status"] == "pending" else []
    return merge_lines(payload, ", ".join([counted(payload["ahead"], "commit"), *asked]))


def _call(payload: Mapping[str, Any]) -> str:
    changed = [change["path"] for change in payload["changes"]]
    caution = f" (changed since you allowed it: {', '.join(changed)})" if changed else ""
    arguments = inert_line(json.dumps(payload["arguments"], ensure_ascii=False))
    shown = arguments if len(arguments) <= ARGUMENTS else f"{arguments[: ARGUMENTS - 1]}…"
    origin = payload.get("origin")
    sender = f"the node {node_label(origin['node'])}, whose caller says it is {origin['says']}, " if origin else ""
    return f"{sender}calls {payload['tool']} ({payload['origin_of_tool']}){caution} with {shown}"


def _origin(approval: Mapping[str, Any]) -> str:
    payload = approval["payload"]
    other = payload.get("other_user")
    user = f"as another user of this machine: {other}" if other else None
    known = [part for part in (payload.get("client"), payload.get("address"), user) if part]
    return f"{approval['requester']} ({', '.join(known)})" if known else approval["requester"]


def _outcome_lines(outcome: Mapping[str, Any]) -> CellLines:
    """What came of an approval; of a merge, also what was known when it was made."""
    return CellLines("\n".join([outcome_text(outcome), *outcome.get("decides", ())]))


def outcome_text(outcome: Mapping[str, Any]) -> str:
    if "granted" in outcome:
        return f"{outcome['agent_id']} is admitted: {granted_text(outcome['granted'])}"
    if "agent_id" in outcome:
        return f"{outcome['agent_id']} is {outcome['status']}"
    if "definition" in outcome:
        return f"{outcome['definition']} is trusted with {', '.join(outcome['needs'])}"
    if "tool" in outcome:
        return f"{outcome['tool']} is {outcome['state']}{' from now on' if outcome['remember'] != 'once' else ''}"
    return f"{outcome['worktree']} is {outcome['state']}"


def approval_page(approval: Mapping[str, Any], how: str = "") -> TablePage:
    """One approval: what it is about, in words, and what was decided.

    Args:
        how: says below how to decide it, while it is pending.
    """
    payload, outcome = approval["payload"], approval["outcome"] or {}
    is_pending = approval["status"] == "pending"
    refused = outcome if "code" in outcome else payload.get("refused") or {}
    facts = {
        "status": approval["status"],
        "about": _about(approval),
        "asked by": _origin(approval),
        "asked at": approval["created_at"],
        "changes requested at": approval["changes_requested_at"],
        "decided by": None if is_pending else decider(approval),
        "decided at": approval["decided_at"],
        "outcome": outcome_text(outcome) if outcome and approval["status"] == "approved" else None,
        "reason": None if refused and approval["status"] == "failed" else approval["reason"],
        "refused": _refusal(refused) if refused else None,
    }
    shown = Table(["", ""], [[name, value] for name, value in facts.items() if value], note=how if is_pending else "")
    parts = [(name, table) for name, table in _details(payload) if table.rows]
    return TablePage(
        [(f"Approval {approval['id']}: {approval['kind'].replace('_', ' ')}", shown), *parts], dict(approval)
    )


def _details(payload: Mapping[str, Any]) -> Sequence[tuple[str, Table]]:
    """What a request lists: commits and files of an integration, its gates; what a definition needs."""
    commits = [[one["id"][:7], one["author"], one["subject"]] for one in payload.get("commits", ())]
    files = [[one["path"], one["added"], one["removed"]] for one in payload.get("files", ())]
    gates = [[one["command"], one["state"]] for one in payload.get("gates", ())]
    return (
        ("Commits", Table(["commit", "author", "subject"], commits)),
        ("Changed files", Table(["file", "+", "−"], files)),
        ("Gates", Table(["gate", "state"], gates)),
    )


def _refusal(error: Mapping[str, Any]) -> str:
    return f"{error['code']}: {in_commands(error['message'])}"
