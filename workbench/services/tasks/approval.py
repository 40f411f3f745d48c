"""Tasks of agents that wait until a person approves them, because they are many, or may spend much.

They are stored as other tasks are, and count one more thing that they wait for (`task_status.unmet`) until the person
has decided. What is left out, or rejected, is cancelled, and leaves its plan.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field, TypeAdapter, ValidationError

from workbench.errors import BadInput, Conflict, Hint, NotFound, Refused
from workbench.model import SECOND, Int64, Level, Wire
from workbench.ops import SYSTEM, Caller, Columns, Command, Ctx, RestRoute, op
from workbench.ops.duties import duty, refreshes_approvals
from workbench.ops.parameters import ApprovalId
from workbench.present.inert import inert
from workbench.rules import budgets as amounts
from workbench.rules.budgets import LIMITS
from workbench.rules.needs import needs_of, told
from workbench.rules.secrets.executed import GivenCheck, GivenCommand, GivenText
from workbench.rules.tasks import approval as rules
from workbench.rules.tasks.approval import Proposed, SpendingLimit
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo, decision_handler
from workbench.services.messages import inbox
from workbench.services.spending import budgets
from workbench.services.tasks import dependencies as graph
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
KIND = "plan"
"""The kind of the questions about tasks that an agent proposes."""
NAMED = 20
"""The most tasks that a message names."""
LISTED = 200
"""The most tasks that an outcome names."""
CHOICES = frozenset({"without", "comment", "comments", *LIMITS})
_WITHOUT: TypeAdapter[list[str | int]] = TypeAdapter(Annotated[list[str | int], Field(max_length=10_000)])
_COMMENTS: TypeAdapter[dict[str, str]] = TypeAdapter(Annotated[dict[str, str], Field(max_length=10_000)])


class ProposedTask(Wire):
    """A task that waits for approval; `depth` is how many of the tasks above it wait, too.

    `after` are the ids of the tasks that it waits for, and `ignores_failure` whether they may fail. `needs` are in
    words. `budget` is what it may spend, with its subtasks.
    """

    id: int
    name: str | None
    depth: int
    title: GivenText
    persona_id: str
    worktree: str | None
    parent_task_id: int | None
    after: list[int]
    ignores_failure: bool
    run: GivenCommand
    check: GivenCheck
    needs: str | None
    budget: dict[str, float] | None
    due: str | None


class ProposedTasks(Wire):
    """Tasks that wait for approval, each followed by its subtasks; `total` is how many there are."""

    SHOWN: ClassVar = Columns(
        "tasks",
        "id name title persona_id=persona worktree after check needs budget",
        "No task waits for this approval.",
    )

    tasks: list[ProposedTask]
    total: int


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command=Command("proposed APPROVAL_ID"),
    rest=RestRoute("GET", "/approvals/{approval_id}/tasks", rows="tasks"),
    refreshed_by="task approval",
)
async def list_proposed_tasks(
    ctx: Ctx,
    approval_id: ApprovalId,
    offset: Annotated[Int64, Field(ge=0, description="How many to leave out at the beginning.")] = 0,
    limit: Annotated[int, Field(ge=1, le=10_000, description="At most this many.")] = 200,
) -> ProposedTasks:
    """List the tasks that an agent proposes, as a tree: what waits for your approval."""

    def query(tx: Reader) -> ProposedTasks:
        question = approvals.find(tx, approval_id)
        if question is None or question.kind != KIND:
            text = f"Approval {approval_id} is not about tasks that an agent proposes."
            raise NotFound("APPROVAL_NOT_FOUND", text, Hint("list_approvals"))
        rows = {row["id"]: row for row in _waiting(tx, approval_id)}
        tree = rules.in_tree(_proposed(tx, approval_id, [*rows.values()]))
        shown = tree[offset : offset + limit]
        return ProposedTasks(tasks=[_shown(rows[task.id], task, depth) for task, depth in shown], total=len(tree))

    return await ctx.read(query)


def _shown(row: Row, task: Proposed, depth: int) -> ProposedTask:
    return ProposedTask(
        **{name: row[name] for name in ("id", "name", "title", "persona_id", "parent_task_id", "due")},
        depth=depth,
        worktree=row["worktree"] or None,
        after=[*task.after],
        ignores_failure=task.ignores,
        run=json.loads(row["run"]) if row["run"] else None,
        check=json.loads(row["check_stated"]) if row["check_stated"] else None,
        needs=told(needs) if (needs := needs_of(json.loads(row["needs"] or "null"))) else None,
        budget=_budget(row),
    )


def ask_first(
    tx: Tx, ctx: Ctx, ids: Sequence[int], plan: str | None = None, stated: SpendingLimit | None = None
) -> int | None:
    """Have new tasks of an agent wait for a person's approval, if the settings say so; the approval, if they wait.

    More of what is asked about already, and subtasks of what waits, are asked about together with it.

    Args:
        plan: the plan that they are of.
        stated: what they may spend, if that is said.

    Raises:
        Conflict: ``TOO_MANY_QUESTIONS``.
    """
    if ctx.caller.agent is None or not ids:
        return None
    subject = f"plan:{plan}" if plan else f"agent:{ctx.caller.agent}"
    question = approvals.open_question(tx, KIND, subject) or (None if plan else _of_parents(tx, ids))
    approval_id = question.id if question else None
    if approval_id is None:
        why = _why(tx, ctx, len(ids), stated)
        if not why:
            return None
        _require_room(tx, ctx)
        payload = {"agent": ctx.caller.name, "plan": plan, "why": why}
        approval_id = approvals.ask(tx, KIND, subject, payload)
    tx.many(SQL.wait, [{"task_id": task_id, "approval": approval_id} for task_id in ids])
    if question is None:  # else the duty brings it up to date
        _update(tx, approval_id)
    return approval_id


def note_on_waiting(approval_id: int | None) -> str | None:
    """What an agent is told of tasks that wait."""
    if approval_id is None:
        return None
    return (
        f"A person decides first (approval {approval_id}); nothing of it begins before that. You get a message with "
        "the decision: go on with something else, wait with read_messages (wait_seconds), or end your turn. Do not "
        "create it again."
    )


def of_plan(tx: Reader, plan: str) -> int | None:
    """The approval for which tasks of a plan wait; None: none does."""
    question = approvals.open_question(tx, KIND, f"plan:{plan}")
    return question.id if question else None


def require_not_left_out(caller: Caller, row: Row) -> None:
    """Refuse an agent that retries what a person left out, or what was cancelled before she decided.

    Raises:
        Refused: ``NOT_APPROVED``.
    """
    if is_left_out(caller, row):
        text = f"Task {row['id']} was never approved. If it is needed, create it anew and say why in its description."
        raise Refused("NOT_APPROVED", text)


def is_left_out(caller: Caller, row: Row) -> bool:
    """Whether a task was cancelled without an approval, and the caller is no person."""
    return row["approval_id"] is not None and caller.level is not Level.OPERATOR


def _of_parents(tx: Reader, ids: Sequence[int]) -> ApprovalInfo | None:
    rows = (tx.one(SQL.approval_of_parent, task_id=task_id) for task_id in ids)
    return next((approvals.find(tx, row["approval_id"]) for row in rows if row is not None), None)


def _require_room(tx: Tx, ctx: Ctx) -> None:
    most, row = ctx.settings.max_agent_questions, tx.one(SQL.count_open, requester=tx.actor)
    if row and row["n"] >= most:
        text = f"A person has not decided yet about {most} of your plans. read_messages waits for the decisions."
        raise Conflict("TOO_MANY_QUESTIONS", text)


def _why(tx: Reader, ctx: Ctx, count: int, stated: SpendingLimit | None) -> list[str]:
    """Why a person is asked; empty: she is not."""
    settings = ctx.settings
    if settings.plan_needs_approval == "never":
        return []
    if settings.plan_needs_approval == "always":
        return ["Every task that an agent creates is asked about."]
    return [*_many(tx, ctx, count), *_much(settings, stated)]


def _many(tx: Reader, ctx: Ctx, count: int) -> list[str]:
    most = ctx.settings.plan_asks_above_tasks
    if count > most:
        return [f"It is {count:,} tasks, more than {most:,}."]
    since = tx.now - round(ctx.settings.plan_asks_within_seconds * SECOND)
    row = tx.one(SQL.created_since, agent=ctx.caller.agent, since=since)
    assert row is not None
    if row["n"] <= most:
        return []
    return [f"With those before, it is {row['n']:,} tasks that you have not been asked about, more than {most:,}."]


def _much(settings: Settings, stated: SpendingLimit | None) -> list[str]:
    if stated is None:
        return []
    most = {"tokens": settings.plan_asks_above_tokens, "usd": settings.plan_asks_above_usd}
    over = [
        name
        for name, limit in most.items()
        if limit is not None and (amount := stated.amounts[name]) is not None and amount > limit
    ]
    if not over:
        return []
    return [f"It may spend {amounts.in_words(stated.amounts, over)}, more than {amounts.in_words(most, over)}."]


def _waiting(tx: Reader, approval_id: int) -> list[Row]:
    return tx.all(SQL.waiting, approval=approval_id)


def _proposed(tx: Reader, approval_id: int, rows: Sequence[Row]) -> list[Proposed]:
    after: dict[int, list[int]] = {}
    for edge in tx.all(SQL.edges, approval=approval_id):
        after.setdefault(edge["task_id"], []).append(edge["depends_on"])
    return [
        Proposed(row["id"], row["name"], row["parent_task_id"], after.get(row["id"], []), row["on_failure"] == "ignore")
        for row in rows
    ]


def _budget(row: Row) -> dict[str, float] | None:
    limits = {name: row[f"budget_{name}"] for name in LIMITS if row[f"budget_{name}"] is not None}
    return limits or None


def _update(tx: Tx, approval_id: int) -> None:
    """Bring a question up to date; withdraw it if nothing waits for it any more."""
    question = approvals.find(tx, approval_id)
    if question is None or question.status != "pending":
        return
    now = _payload(tx, question)
    if now["tasks"]:
        approvals.amend(tx, question, now)
    else:
        approvals.withdraw(tx, question, "Nothing of it is left: its tasks were cancelled.")


def _payload(tx: Reader, question: ApprovalInfo) -> dict[str, Any]:
    """What a question says now."""
    rows, plan = _waiting(tx, question.id), question.payload["plan"]
    whole = tx.one(SQL.budget_of_plan, plan=plan) if plan else None
    limit = rules.limit_of(
        [(row["id"], row["parent_task_id"], _budget(row)) for row in rows], _budget(whole) if whole else None
    )
    decides = [*question.payload["why"], _work(rows), _spending(limit)]
    return {**question.payload, "tasks": len(rows), "limits": dict(limit.amounts), "decides": decides}


def _work(rows: Sequence[Row]) -> str:
    """What kinds of tasks there are, in a sentence."""
    personas = Counter(row["persona_id"] for row in rows).most_common()
    worktrees = [*dict.fromkeys(row["worktree"] for row in rows if row["worktree"])]
    commands, checks = (sum(row[name] is not None for row in rows) for name in ("run", "check_stated"))
    parts = [
        _listed([f"{number:,} for {persona}" for persona, number in personas], 5),
        f"in {_listed(worktrees, 5)}" if worktrees else "",
        f"{commands:,} with a command" if commands else "",
        f"{checks:,} with a check" if checks else "",
    ]
    return f"{'; '.join(filter(None, parts))}."


def _spending(limit: SpendingLimit) -> str:
    """What they may spend, in a sentence."""
    stated = amounts.in_words(limit.amounts)
    if not stated:
        return "No limit is stated of what they may spend."
    return f"At most {stated}{f'; without a limit: {_tasks(limit.unlimited)}' if limit.unlimited else ''}."


@refreshes_approvals
@duty("refreshing questions about plans", 1.0, share=0.05, once=True)
async def refresh(ctx: Ctx) -> None:
    """Bring the questions about plans up to date: tasks were added to them, cancelled, or changed."""

    def query(tx: Reader) -> list[int]:
        return [question.id for question in approvals.pending(tx, KIND) if _payload(tx, question) != question.payload]

    def change(tx: Tx) -> None:
        for approval_id in stale:
            _update(tx, approval_id)

    if await approvals.is_pending(ctx, KIND) and (stale := await ctx.read(query)):
        await ctx.of(SYSTEM).write(change)


@decision_handler(KIND)
async def decide_plan(ctx: Ctx, question: ApprovalInfo, yes: bool, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Approved: the tasks may be begun, but for those that are left out, and what depends on those or is below them.

    Rejected: all are cancelled. The agent that proposed them is told.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``, ``NOTHING_LEFT``, ``BAD_SCOPE``, ``TOO_LARGE``. NotFound: ``TASK_NOT_FOUND``.
    """
    approvals.check_choices(choices, set(CHOICES) if yes else {"reason"})
    words = _text(ctx, choices.get("comment" if yes else "reason"))
    without = _valid(_WITHOUT, choices, "without", [])
    noted = {key: _text(ctx, text) for key, text in _valid(_COMMENTS, choices, "comments", {}).items()}
    comments = {key: text for key, text in noted.items() if text}
    limits = _limits(question, {name: choices[name] for name in LIMITS if name in choices})
    person = approvals.person_of(ctx)

    def change(tx: Tx) -> dict[str, Any]:
        rows = {row["id"]: row for row in _waiting(tx, question.id)}
        keys = {str(row["id"]): row["id"] for row in rows.values()}
        keys |= {row["name"]: row["id"] for row in rows.values() if row["name"]}
        out = {_require(keys, str(key)) for key in without} if yes else {*rows}
        also = rules.left_with(out, _proposed(tx, question.id, [*rows.values()]))
        if yes and rows and len(out | also) == len(rows):
            text = "Nothing would be left. Reject it instead, and say why: `workbench reject ID --reason …`."
            raise BadInput("NOTHING_LEFT", text)
        outcome = {
            "state": "approved" if yes else "rejected",
            "plan": question.payload["plan"],
            "asked_for_by": question.payload["agent"],
            "tasks": len(rows) - len(out | also),
            "cancelled": len(out | also),
            "left_out": _names(rows, out) if yes else [],
            "left_out_with": _names(rows, also),
        }
        decided = approvals.decide(tx, question, "approved" if yes else "rejected", words, outcome, person)
        about = {_require(keys, key): text for key, text in comments.items()}
        _leave_out(tx, question, sorted(out | also), "left out" if yes else f"rejected: {words or 'no reason given'}")
        for row in tx.all(SQL.approve, approval=question.id):
            session = rows[row["task_id"]]["session_id"]
            tx.emit("task.approved", f"task:{row['task_id']}", session=session, approval=question.id)
        if limits:
            budgets.state(tx, f"plan:{question.payload['plan']}", limits, "person")
        for task_id, text in about.items():
            inbox.send(tx, ctx, "comment", text, None, task_id)
        _tell(
            tx, ctx, question, outcome, words, {rows[task_id]["name"] or task_id: about[task_id] for task_id in about}
        )
        return decided

    return await ctx.write(change)


def _text(ctx: Ctx, value: object) -> str:
    if not isinstance(value, str | None):
        raise BadInput("INVALID_ARGUMENTS", "A comment is a text.", problems=["comment"])
    words = (value or "").strip()
    return inert(inbox.masked(ctx, words, ctx.settings.max_message_bytes)) if words else ""


def _valid(adapter: TypeAdapter[Any], choices: Mapping[str, Any], name: str, default: Any) -> Any:
    try:
        return adapter.validate_python(choices.get(name, default))
    except ValidationError as error:
        what = {"without": "a list of names or ids of tasks", "comments": "a mapping from tasks to texts"}[name]
        raise BadInput("INVALID_ARGUMENTS", f"The choice {name} is {what}.", problems=[str(error)]) from None


def _limits(question: ApprovalInfo, chosen: Mapping[str, Any]) -> dict[str, Any]:
    if not chosen:
        return {}
    if question.payload["plan"] is None:
        text = "These tasks are in no plan, so they have no common budget. Set one of a task: `workbench budgets set`."
        raise BadInput("BAD_SCOPE", text)
    try:
        return amounts.in_short(chosen) or {}
    except ValueError as error:
        raise BadInput("INVALID_ARGUMENTS", f"The budget cannot be so: {error}.", problems=[str(error)]) from None


def _require(keys: Mapping[str, int], key: str) -> int:
    if key not in keys:
        text = f"No task {key!r} waits for this approval."
        raise NotFound("TASK_NOT_FOUND", text, Hint("list_proposed_tasks", "{} lists those that do."))
    return keys[key]


def _names(rows: Mapping[int, Row], ids: Collection[int]) -> list[str | int]:
    return [rows[task_id]["name"] or task_id for task_id in sorted(ids)[:LISTED]]


def _leave_out(tx: Tx, question: ApprovalInfo, ids: Sequence[int], reason: str) -> None:
    """Cancel tasks and take them out of their plan; a plan of which nothing is left is no more."""
    tx.many(SQL.detach, [{"task_id": task_id} for task_id in ids])
    graph.cancel(tx, [(task_id, reason) for task_id in ids])
    if (plan := question.payload["plan"]) and tx.run(SQL.forget_plan, plan=plan):
        budgets.forget(tx, f"plan:{plan}")


def _tell(
    tx: Tx, ctx: Ctx, question: ApprovalInfo, outcome: Mapping[str, Any], words: str, comments: Mapping[Any, str]
) -> None:
    """Tell the agent that proposed the tasks what was decided, unless it has ended."""
    agent = approvals.requester_of(tx, question.requester)
    uid = (agent or "").partition(":")[2]
    if not uid or not inbox.reaches(tx, uid):
        return
    what = f"Your plan {outcome['plan']}" if outcome["plan"] else "The tasks that you created"
    if outcome["state"] == "rejected":
        lines = [f"{what}: rejected. What waited, {_tasks(outcome['cancelled'])}, is cancelled."]
        lines += [f"The reason: {words}"] if words else []
    else:
        out, also = outcome["left_out"], outcome["left_out_with"]
        lines = [f"{what}: approved; {_tasks(outcome['tasks'])} may begin."]
        lines += [f"Left out: {_listed(out)}."] if out else []
        lines += [f"Left out with them, because they need or are part of them: {_listed(also)}."] if also else []
        lines += [f"Comment: {words}"] if words else []
    lines += [f"On task {name}: {text}" for name, text in comments.items()]
    text, most = "\n".join(lines), ctx.settings.max_message_bytes
    inbox.send(tx, ctx, "message", text if len(text.encode()) <= most else _cut(text, most), uid)


def _tasks(count: int) -> str:
    return f"{count:,} task{'' if count == 1 else 's'}"


def _cut(text: str, most: int) -> str:
    """The beginning of a text; the comments are with their tasks, too."""
    end = "\n… The other comments are with their tasks."
    return text.encode()[: most - len(end.encode())].decode(errors="ignore") + end


def _listed(names: Sequence[str | int], most: int = NAMED) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more
