"""The inbox: `approvals`, `approve`, `reject`."""

from __future__ import annotations

import fnmatch
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
from workbench.errors import AWAY, BadInput, Conflict, Hint, NotFound, Unavailable, from_dict
from workbench.present.inert import inert_line
from workbench.present.tables import CellLines, Table, TablePage
from workbench.rules.budgets import in_words, parse
from workbench.rules.personalities.addresses import node_label
from workbench.rules.wording import error_in_commands

TOOL_CALL, PEER_CALL = "tool_call", "peer_call"
TRUST = "trust"
"""The kind of approvals about what definitions need; `workbench approvals` shows it, so `--all` does not approve it."""
QUESTION = "question"
"""The kind of questions of servers, each of which is answered alone: `answer`."""
AGENT_QUESTION = "agent_question"
"""The kind of questions of agents, which are answered in the same way."""
FAILURE = "failure"
"""The kind of questions about agents that are held because what they work with fails: go on, or stop them."""
BUDGET = "budget"
"""The kind of questions about budgets that are used up: raise them, go on once more, or stop."""
PLAN = "plan"
"""The kind of questions about tasks that an agent proposes: begin all, or a part, or none."""
KINDS = ("registration", "integration", TRUST, TOOL_CALL, PEER_CALL, QUESTION, AGENT_QUESTION, FAILURE, BUDGET, PLAN)
_LASTING = {
    "once": "",
    "conversation": " in this conversation from now on",
    "task": " for this task from now on",
}
_TOLD = {
    "accept": "has the answer",
    "decline": "was told that you decline",
    "cancel": "was told that you have not chosen",
}
NAMED = 20
"""Tasks that are named at most."""
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
    pending = client.call("list_approvals", status="pending", limit=MOST)["approvals"]
    table = waiting_table(pending, NONE_WAITS)
    if not everything:
        return table
    decided = client.call("list_decided_approvals", limit=DECIDED)["approvals"]
    history = decided_table(decided, "No approval has been decided yet.")
    return TablePage([("Waiting", table), ("Decided", history)], [*pending, *decided])


def waiting_table(approvals: Sequence[Mapping[str, Any]], empty: str) -> Table:
    """Pending approvals, and what each is about."""
    rows = [[a["id"], a["kind"], _about(a), _origin(a), a["created_at"], a["status"]] for a in approvals]
    return Table(["id", "kind", "about", "asked by", "at", "status"], rows, empty, approvals)


def decided_table(approvals: Sequence[Mapping[str, Any]], empty: str) -> Table:
    """Approvals, and who decided them and why."""
    heads = ["id", "kind", "about", "asked by", "status", "by", "at", "reason"]
    rows = [
        [a["id"], a["kind"], _subject(a), requester(a), a["status"], decider(a), a["decided_at"], a["reason"]]
        for a in approvals
    ]
    return Table(heads, rows, empty, approvals)


def requester(approval: Mapping[str, Any]) -> str:
    """The person who asked, by name, or else the agent."""
    return str(approval["asker"] or approval["requester"])


def decider(approval: Mapping[str, Any]) -> str:
    """The person who decided, by name, or else the rule or agent."""
    return str(approval["person"] or approval["decided_by"])


def _subject(approval: Mapping[str, Any]) -> str:
    payload = approval["payload"]
    if approval["kind"] == "registration":
        granted = (approval["outcome"] or {}).get("agent_id") if approval["status"] == "approved" else None
        return f"{payload['name']}, as {granted}" if granted else str(payload["name"])
    if approval["kind"] == TRUST:
        return f"the definition {payload['definition']}"
    if approval["kind"] in (TOOL_CALL, PEER_CALL, QUESTION):
        return f"the tool {payload['tool']}"
    if approval["kind"] == AGENT_QUESTION:
        return inert_line(payload["message"])
    if approval["kind"] in (FAILURE, BUDGET):
        return str(payload["what"])
    if approval["kind"] == PLAN:
        return plan_name(payload)
    return f"{payload['worktree']} into {payload['target']}"


@root.command()
@click.argument("requests", metavar="[ID|NAME]...", nargs=-1, shell_complete=offers.approvals)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="All pending approvals, but for the kinds trust, budget and plan, and questions.",
)
@click.option("--kind", type=click.Choice(KINDS), help="With --all: only of this kind.")
@click.option("--id", "agent_id", metavar="ID", default=None, help="The agent's id (one registration).")
@click.option("--despite-gates", is_flag=True, help="Merge although gates failed or are still running.")
@click.option(
    "--always",
    is_flag=True,
    help="Allow all calls of a tool, until its description or schema changes; or all calls of a trait by a node.",
)
@click.option(
    "--for",
    "remember",
    type=click.Choice(["once", "conversation", "task", "always"]),
    help="Allow the call of a tool, or all its calls in the same conversation or for the same task, or all.",
)
@click.option(
    "--with",
    "patterns",
    metavar="ARGUMENT=PATTERN",
    multiple=True,
    help="Only calls of the tool with such arguments, of which each needs a pattern; * is any text.",
)
@click.option("--budget", metavar="AMOUNTS", help="The new limits of a budget, such as 40usd or 200k tokens.")
@click.option("--without", metavar="TASK,…", default=None, help="Leave these tasks of a plan out, by name or id.")
@click.option("--comment", metavar="TEXT", default=None, help="What to tell the agent that proposes tasks.")
@click.option(
    "--on",
    "comments",
    type=(str, str),
    metavar="TASK TEXT",
    multiple=True,
    help="A comment on a task of a plan, for that agent and for whoever does the task; may be given several times.",
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
    remember: str | None,
    patterns: tuple[str, ...],
    budget: str | None,
    without: str | None,
    comment: str | None,
    comments: tuple[tuple[str, str], ...],
    no_wait: bool,
    **options: Any,
) -> Shown:
    """Approve requests: admit agents, merge worktrees, trust definitions, let tools be called, let plans be begun. Name
    them by id, or by the agent, worktree, definition, tool or plan they are about."""
    approval_ids = _choose_ids(client, requests, everything, kind, with_trust=False)
    if agent_id is not None and len(approval_ids) > 1:
        raise click.UsageError("An id is for one agent. Omit --id, or approve one by one.")
    chosen = choices(options, agent_id=agent_id) | ({"despite_gates": True} if despite_gates else {})
    chosen |= {"remember": "always"} if always else {"remember": remember} if remember else {}
    chosen |= {"arguments": _patterns(patterns)} if patterns else {}
    chosen |= parse(budget) if budget is not None else {}
    chosen |= {"without": [name.strip() for name in without.split(",") if name.strip()]} if without is not None else {}
    chosen |= {"comment": comment} if comment is not None else {}
    chosen |= {"comments": dict(comments)} if comments else {}
    if len(approval_ids) == 1:
        outcome = client.call("approve", approval_id=approval_ids[0], choices=chosen)["outcome"]
        decisions = [{"approval_id": approval_ids[0], "ok": True, "outcome": outcome}]
    elif approval_ids:
        decisions = client.call("approve_many", approval_ids=list(approval_ids), choices=chosen)["decisions"]
    else:
        decisions = []
    if not no_wait:
        decisions = [settle(client.call, decision, lambda: client.find_server() is not None) for decision in decisions]
    if len(decisions) == 1 and not decisions[0]["ok"]:
        raise from_dict(decisions[0]["error"])
    return _decision_table(decisions)


def _patterns(words: Sequence[str]) -> dict[str, str]:
    """The patterns of arguments, by argument."""
    pairs = [word.partition("=") for word in words]
    if wrong := [name for name, sign, _ in pairs if not sign]:
        raise click.UsageError(f"--with {wrong[0]}: write ARGUMENT=PATTERN, such as path=notes/*.")
    return {name: pattern for name, _, pattern in pairs}


@root.command()
@click.argument("requests", metavar="[ID|NAME]...", nargs=-1, shell_complete=offers.approvals)
@click.option("--all", "everything", is_flag=True, help="All pending approvals.")
@click.option("--kind", type=click.Choice(KINDS), help="With --all: only of this kind.")
@click.option("--named", metavar="PATTERN", default=None, help="Registrations with this name; * and ? as in a shell.")
@click.option("--reason", default="", help="Sent to the requester.")
@pass_client
def reject(
    client: OperatorClient,
    requests: tuple[str, ...],
    everything: bool,
    kind: str | None,
    named: str | None,
    reason: str,
) -> Shown:
    """Reject requests. Name them by id, or by the agent, worktree, definition or tool they are about."""
    if named is not None:
        if requests or everything or kind:
            raise click.UsageError("--named chooses the registrations. Leave out ids, names, --all and --kind.")
        waiting = client.call("list_approvals", kind="registration", limit=MOST)["approvals"]
        approval_ids = tuple(a["id"] for a in waiting if fnmatch.fnmatchcase(a["payload"]["name"], named))
    else:
        approval_ids = _choose_ids(client, requests, everything, kind)
    if len(approval_ids) == 1:
        decision = client.call("reject", approval_id=approval_ids[0], reason=reason)
        return Note(f"Rejected {approval_ids[0]}.", [decision])
    if not approval_ids:
        return _decision_table([])
    return _decision_table(client.call("reject_many", approval_ids=list(approval_ids), reason=reason)["decisions"])


def _choose_ids(
    client: OperatorClient, requests: Sequence[str], everything: bool, kind: str | None, *, with_trust: bool = True
) -> tuple[int, ...]:
    """The ids of the approvals that a command is for. `with_trust`: `--all` means those of the kind trust as well."""
    if everything:
        pending = client.call("list_approvals", kind=kind, limit=MOST)["approvals"]
        alone = () if with_trust else (TRUST, QUESTION, AGENT_QUESTION, BUDGET, PLAN)
        named = (TRUST, BUDGET, PLAN)
        return tuple(a["id"] for a in pending if a["kind"] not in alone or (a["kind"] == kind and kind in named))
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
    ids = [approval["id"] for approval in waiting if name in _names(approval)]
    if not ids:
        raise NotFound(
            "APPROVAL_NOT_FOUND",
            f"No request of {name!r} waits for a decision.",
            Hint("list_approvals", "{} lists those that wait."),
        )
    if len(ids) > 1:
        text = f"{len(ids)} requests are about {name!r}: {', '.join(map(str, ids))}. Give the id of one."
        raise BadInput("AMBIGUOUS_NAME", text, candidates=ids)
    return int(ids[0])


def _names(approval: Mapping[str, Any]) -> set[str | None]:
    payload = approval["payload"]
    if approval["kind"] == "registration":
        return {payload["name"], payload["suggested_id"], payload["agent_id"]}
    if approval["kind"] == TRUST:
        return {payload["definition"], payload["definition_id"], payload["path"]}
    if approval["kind"] in (TOOL_CALL, PEER_CALL, QUESTION):
        return {payload["tool"], payload["call_id"]}
    if approval["kind"] == AGENT_QUESTION:
        return {payload["agent"]}
    if approval["kind"] in (FAILURE, BUDGET):
        return {payload["scope"]}
    if approval["kind"] == PLAN:
        return {payload["plan"] or payload["agent"]}
    return {payload["worktree"], payload["branch"]}


def settle(
    call: Callable[..., Mapping[str, Any]], decision: dict[str, Any], is_served: Callable[[], bool]
) -> dict[str, Any]:
    """Wait until a queued decision is merged or refused; while no server runs, or another machine's has to merge it, it
    stays queued."""
    if not decision["ok"] or decision["outcome"].get("state") != "queued" or decision["outcome"].get("machine"):
        return decision
    approval: Mapping[str, Any] = {"settled": False}
    while not approval["settled"]:
        if not is_served():  # it was stopped: the queue goes on when one runs again
            return decision
        try:
            approval = call("get_approval", approval_id=decision["approval_id"], wait_seconds=20)
        except Unavailable as away:
            if away.code not in AWAY:
                raise
            return decision
    outcome = approval["outcome"]
    if approval["status"] == "approved":
        return {**decision, "outcome": outcome}
    error = {name: outcome[name] for name in ("code", "message", "details")}
    return {"approval_id": decision["approval_id"], "ok": False, "error": {**error, "status": Conflict.status}}


def _decision_table(decisions: list[dict[str, Any]]) -> Table:
    rows = [[d["approval_id"], _outcome_lines(d["outcome"]) if d["ok"] else _refusal(d["error"])] for d in decisions]
    shape = Table if all(d["ok"] for d in decisions) else PartialFailure
    return shape(["id", "outcome"], rows, "Nothing needs your approval.", decisions)


def _about(approval: Mapping[str, Any]) -> str:
    payload = approval["payload"]
    if approval["kind"] == "registration":
        session = session_text(payload["suggested_session"])
        if payload["suggested_session"]:
            session += f", that of {payload['spawned_by']}, who spawned it" if payload.get("spawned_by") else ", yours"
        agent = f"{payload['suggested_id']} ({payload['persona_id'] or 'no persona'})"
        tools = f", with the tools {', '.join(payload['tools'])}" if payload.get("tools") else ""
        return f"{payload['name']} wants to be {agent}, {session}{tools}"
    if approval["kind"] == TRUST:
        return f"{payload['definition']} needs trust: {'; '.join(need['summary'] for need in payload['needs'])}"
    if approval["kind"] in (TOOL_CALL, PEER_CALL):
        return _call(payload)
    if approval["kind"] in (QUESTION, AGENT_QUESTION):
        return question_text(payload)
    if approval["kind"] == FAILURE:
        return failure_text(payload)
    if approval["kind"] == BUDGET:
        return budget_text(payload)
    if approval["kind"] == PLAN:
        return plan_text(payload)
    notes = ["changes requested"] if approval["changes_requested_at"] and approval["status"] == "pending" else []
    return merge_lines(payload, ", ".join([counted(payload["ahead"], "commit"), *notes]))


def _call(payload: Mapping[str, Any]) -> str:
    changed = [change["path"] for change in payload["changes"]]
    caution = f" (changed since you allowed it: {', '.join(changed)})" if changed else ""
    arguments = inert_line(json.dumps(payload["arguments"], ensure_ascii=False))
    shown = arguments if len(arguments) <= ARGUMENTS else f"{arguments[: ARGUMENTS - 1]}…"
    origin = payload.get("origin")
    sender = f"the node {node_label(origin['node'])}, whose caller says it is {origin['says']}, " if origin else ""
    return f"{sender}calls {payload['tool']} ({payload['origin_of_tool']}){caution} with {shown}"


def failure_text(payload: Mapping[str, Any]) -> str:
    """What fails, and which agents wait for the answer."""
    attempts = ", ".join(f"{task}/{attempt}" for task, attempt in payload["attempts"])
    cause = inert_line(payload["message"].partition("\n")[0].rstrip("."))
    return (
        f"{payload['what']} fails ({payload['failure']}): {cause}; "
        f"{counted(payload['agents'], 'agent')} may claim no tasks until you approve (go on) or reject (stop them); "
        f"seen in the attempts {attempts} (task/attempt)"
    )


def budget_text(payload: Mapping[str, Any]) -> str:
    """What is used up, and what waits for the answer."""
    names = payload["used_up"]
    spent, limits = in_words(payload["spent"], names), in_words(payload["limits"], names)
    return (
        f"the budget of {payload['what']} is used up: {spent} of {limits}; {counted(payload['tasks'], 'task')} waiting "
        f"until you approve (--budget raises it{'; else as much again as was stated' if _has_more(payload) else ''}) "
        "or reject (nothing more begins)"
    )


def _has_more(payload: Mapping[str, Any]) -> bool:
    """Whether as much again as was stated is more: not of nothing."""
    return all(payload["stated"].get(name) for name in payload["used_up"])


def plan_name(payload: Mapping[str, Any]) -> str:
    """What an agent proposes: its plan, or tasks of no plan."""
    return f"the plan {payload['plan']}" if payload["plan"] else f"tasks of {payload['agent']}"


def plan_text(payload: Mapping[str, Any]) -> str:
    """What an agent proposes, why it is asked about, and what it may spend."""
    return f"{plan_name(payload)}: {counted(payload['tasks'], 'task')}. {' '.join(payload['decides'])}"


def question_text(payload: Mapping[str, Any]) -> str:
    """A question: of an agent, with its options; of a server, its fields, and what to beware of."""
    if "agent" in payload:
        about = f" about task {payload['task_id']}" if payload["task_id"] else ""
        options = f"; options: {', '.join(payload['options'])}" if payload["options"] else ""
        return f"{payload['agent']} asks{about}: {inert_line(payload['message'])}{options}"
    node = f", called by the node {node_label(payload['node'])}," if payload["node"] else ""
    parts = [f"the MCP server {payload['server']}{node} asks for {payload['tool']}: {inert_line(payload['message'])}"]
    if payload["url"]:
        parts.append(f"it wants you to visit {payload['url']}; see whose address this is before you open it")
    if fields := payload["form"]["properties"]:
        parts.append(f"fields: {', '.join(map(inert_line, fields))}")
    if payload["sensitive"]:
        parts.append(f"{', '.join(map(inert_line, payload['sensitive']))} looks like a secret: the server would get it")
    return "; ".join(parts)


def _origin(approval: Mapping[str, Any]) -> str:
    payload = approval["payload"]
    other = payload.get("other_user")
    user = f"as another user of this machine: {other}" if other else None
    origins = [part for part in (payload.get("client"), payload.get("address"), user) if part]
    return f"{requester(approval)} ({', '.join(origins)})" if origins else requester(approval)


def _outcome_lines(outcome: Mapping[str, Any]) -> CellLines:
    """What came of an approval; of a merge, also what was known when it was made."""
    return CellLines("\n".join([outcome_text(outcome), *outcome.get("decides", ())]))


def outcome_text(outcome: Mapping[str, Any]) -> str:
    if outcome.get("machine"):
        return f"{outcome['worktree']} is queued: the server of {outcome['machine']}, which has the worktree, merges it"
    if "asked_by" in outcome:
        return f"{outcome['asked_by']} {_TOLD['accept' if outcome['answer'] else 'decline']}"
    if "action" in outcome:
        return f"{outcome['server']} {_TOLD[outcome['action']]}"
    if "granted" in outcome:
        return f"{outcome['agent_id']} is admitted: {granted_text(outcome['granted'])}"
    if "agent_id" in outcome:
        return f"{outcome['agent_id']} is {outcome['status']}"
    if "definition" in outcome:
        return f"{outcome['definition']} is trusted with {', '.join(outcome['needs'])}"
    if "tool" in outcome:
        such = " with such arguments" if outcome.get("arguments") else ""
        return f"{outcome['tool']} is {outcome['state']}{such}{_LASTING.get(outcome['remember'], ' from now on')}"
    if "left_out" in outcome:
        return _begun(outcome)
    if "budget" in outcome:
        return f"the budget of {outcome['budget']} is {outcome['state']}"
    if "scope" in outcome:
        return f"{outcome['what']}: its agents are {outcome['state']}"
    return f"{outcome['worktree']} is {outcome['state']}"


def how_to_decide(approval: Mapping[str, Any]) -> str:
    """The command that decides a pending approval, and what it does, in a sentence."""
    number, payload, about = approval["id"], approval["payload"], _brief(_subject(approval))
    approves = f"`workbench approve {number}`"
    match approval["kind"]:
        case "integration":
            return f"{approves} merges {about}."
        case "registration":
            return f"{approves} admits {about}."
        case "plan":
            return f"{approves} lets {about} begin; `workbench proposed {number}` lists its tasks."
        case "budget":
            if not _has_more(payload):
                return f"`workbench approve {number} --budget AMOUNTS` raises the budget of {about}, which is used up."
            return f"{approves} goes on although the budget of {about} is used up, with as much again."
        case "failure":
            return f"{approves} goes on with {about}, which fails again and again."
        case "agent_question":
            return f"`workbench answer {number} TEXT` answers {payload['agent']}: {about}"
        case "question":
            return f"`workbench answer {number}` answers {about}."
    return f"{approves} allows {about}."


def _brief(text: str) -> str:
    line = inert_line(text)
    return line if len(line) <= ARGUMENTS else f"{line[: ARGUMENTS - 1]}…"


def _begun(outcome: Mapping[str, Any]) -> str:
    left_out = [*map(str, outcome["left_out"])]
    also = [f"{name} (needs or is part of one of these)" for name in outcome["left_out_with"]]
    names = [*left_out, *also]
    others = outcome["cancelled"] - NAMED
    shown = ", ".join(names[:NAMED]) + (f" and {others:,} more" if others > 0 else "")
    return f"{counted(outcome['tasks'], 'task')} may begin" + (f"; left out: {shown}" if names else "")


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
    commits = [[item["id"][:7], item["author"], item["subject"]] for item in payload.get("commits", ())]
    files = [[item["path"], item["added"], item["removed"]] for item in payload.get("files", ())]
    gates = [[item["command"], item["state"]] for item in payload.get("gates", ())]
    return (
        ("Commits", Table(["commit", "author", "subject"], commits)),
        ("Changed files", Table(["file", "+", "−"], files)),
        ("Gates", Table(["gate", "state"], gates)),
        ("Fields", _fields(payload.get("form") or {})),
    )


def _fields(form: Mapping[str, Any]) -> Table:
    """The fields of the form with which a server asks."""
    required = form.get("required", ())
    rows = [
        [
            name,
            field.get("type"),
            field.get("description") or field.get("title"),
            "" if name in required else "optional",
        ]
        for name, field in form.get("properties", {}).items()
    ]
    return Table(["field", "type", "about", ""], rows)


def _refusal(error: Mapping[str, Any]) -> str:
    return str(error_in_commands(from_dict(error)))
