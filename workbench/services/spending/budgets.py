"""Budgets: what the project, a plan, or a task with its subtasks may spend, by the ledger.

A task is in the budgets of all that it is part of. What is booked is compared with them in the same transaction; then
only the marks are read: by the gateway of models before a request, and by agents that claim tasks. Of a budget that is
used up the person is asked once.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from workbench.errors import BadInput, Hint, NotFound, Refused
from workbench.model import Level, TaskState, Wire
from workbench.ops import SYSTEM, Columns, Command, Ctx, RestRoute, op
from workbench.ops.duties import duty, prepares
from workbench.rules import budgets as rules
from workbench.rules.budgets import LIMITS
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo, decision_handler
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
KIND = "budget"
"""The kind of the questions of budgets that are used up."""
PROJECT = "project"
SPENT_BY_REQUESTS = ("tokens", "usd")
StatedBy = Literal["settings", "plan", "person"]
SHOWN_TASKS = 10_000


class BudgetInfo(Wire):
    """A budget, and what is spent of it. `stated` is what was said; the limits in `tokens`, `usd` and `attempts` may
    have been raised since. `used_up` and `nearly` (80 %) name limits; `stopped`: the person wants no more of it.

    `unpriced` requests have no known cost, which `spent_usd` does not contain. `waiting` are the tasks that nobody may
    claim because it is used up.
    """

    scope: str
    tokens: int | None
    spent_tokens: int
    usd: float | None
    spent_usd: float
    attempts: int | None
    spent_attempts: int
    unpriced: int
    nearly: list[str]
    used_up: list[str]
    stopped: bool
    stated: dict[str, float]
    stated_by: StatedBy
    waiting: list[int]


class Budgets(Wire):
    """The budgets that there are."""

    SHOWN: ClassVar = Columns(
        "budgets",
        "scope=budget spent_tokens=tokens tokens=of spent_usd=usd usd=of attempts nearly used_up=used up stopped",
        "There is no budget.",
    )

    budgets: list[BudgetInfo]


class BudgetSet(Wire):
    """A budget that was set, or removed."""

    scope: str
    words: str


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command=Command("budgets list"),
    rest=RestRoute("GET", "/budgets", rows="budgets"),
    refreshed_by="budget",
)
async def list_budgets(ctx: Ctx) -> Budgets:
    """List what may be spent, and what is spent of it, by the project, plans and tasks."""
    return await ctx.read(lambda tx: Budgets(budgets=[_info(tx, row) for row in tx.all(SQL.list)]))


@op(allow=Level.OPERATOR, tool=False, command=Command("budgets set SCOPE", "{scope} may spend {words}."))
async def set_budget(
    ctx: Ctx,
    scope: Annotated[str, Field(max_length=200, description="project, plan:NAME, or task:ID with its subtasks.")],
    tokens: Annotated[int | None, Field(ge=0, le=10**15, description="Tokens of all kinds; null: any.")] = None,
    usd: Annotated[float | None, Field(ge=0, le=1e9, description="US dollars; null: any.")] = None,
    attempts: Annotated[int | None, Field(ge=0, le=10**6, description="Attempts at tasks; null: any.")] = None,
) -> BudgetSet:
    """Set what a project, plan or task may spend, instead of what was said before; without a limit, anything.

    Raises:
        BadInput: ``BAD_SCOPE``. NotFound: ``PLAN_NOT_FOUND``, ``TASK_NOT_FOUND``.
    """
    limits = {"tokens": tokens, "usd": usd, "attempts": attempts}
    stated = {name: value for name, value in limits.items() if value is not None}

    def change(tx: Tx) -> BudgetSet:
        _require_scope(tx, scope)
        state(tx, scope, stated or None, "person")
        return BudgetSet(scope=scope, words=rules.in_words(limits) or "what it likes")

    return await ctx.write(change)


def _parts(scope: str) -> tuple[str, str | int]:
    """The kind of a scope, and its name or number."""
    kind, _, ref = scope.partition(":")
    return kind, int(ref) if kind == "task" else ref


def _require_scope(tx: Reader, scope: str) -> None:
    kind, _, ref = scope.partition(":")
    if scope == PROJECT:
        return
    if kind == "plan" and ref:
        if not tx.one(SQL.has_plan, ref=ref):
            raise NotFound("PLAN_NOT_FOUND", f"There is no plan {ref!r}.", Hint("list_plans", "{} lists the plans."))
    elif kind == "task" and ref.isascii() and ref.isdecimal() and len(ref) < 19:
        if not tx.one(SQL.has_task, ref=int(ref)):
            raise NotFound("TASK_NOT_FOUND", f"There is no task {ref}.", Hint("list_tasks", "{} lists the tasks."))
    else:
        raise BadInput("BAD_SCOPE", f"Nothing has the budget {scope!r}. Write project, plan:NAME or task:ID.")


def stated(tx: Reader, scope: str, by: StatedBy) -> dict[str, Any] | None:
    """What was said of a budget; None: nothing, or by others."""
    row = tx.one(SQL.get, scope=scope)
    return json.loads(row["stated"]) if row and row["stated_by"] == by else None


def is_stated(tx: Reader, scope: str) -> bool:
    """Whether there is a budget."""
    return tx.one(SQL.get, scope=scope) is not None


def state(tx: Tx, scope: str, budget: Mapping[str, Any] | None, by: StatedBy) -> None:
    """Set or remove a budget. What is spent already counts."""
    row = tx.one(SQL.get, scope=scope)
    if row is not None and (question := approvals.open_question(tx, KIND, f"budget:{scope}")):
        approvals.withdraw(tx, question, "The budget was set anew.")
    if budget is None:
        tx.run(SQL.remove, scope=scope)
    else:
        limits = dict.fromkeys(LIMITS) | dict(budget)
        tx.run(SQL.put, limits, scope=scope, stated=json.dumps(dict(budget)), by=by, now=tx.now)
        _compare(tx, _require(tx, scope))
    tx.emit("budget.set", f"budget:{scope}", limits=budget)


@prepares
async def state_of_settings(ctx: Ctx) -> None:
    """Set the budget of the project that the settings state, if they state another than before."""
    given = {name: getattr(ctx.settings, f"budget_{name}") for name in LIMITS}
    wanted = {name: value for name, value in given.items() if value is not None} or None
    if wanted == await ctx.read(lambda tx: stated(tx, PROJECT, "settings")):
        return
    await ctx.of(SYSTEM).write(lambda tx: state(tx, PROJECT, wanted, "settings"))


def follow(tx: Tx, task_id: int | None) -> None:
    """Compare what is spent with the budgets that a task is in, after something of it was booked or has ended.

    Args:
        task_id: None: what was booked was for no task; only the project's counts.
    """
    for row in tx.all(SQL.of_task, task_id=task_id):
        _compare(tx, row)


def is_used_up(tx: Reader, task_id: int) -> bool:
    """Whether the gateway refuses the requests of a task's attempts."""
    return any({*row["used_up"].split()} & {*SPENT_BY_REQUESTS} for row in tx.all(SQL.of_task, task_id=task_id))


def obstacle(tx: Reader, task_id: int) -> str | None:
    """Why a task may not be begun, in words; None: it may."""
    rows = [row for row in tx.all(SQL.of_task, task_id=task_id) if row["used_up"]]
    return f"the budget of {_named(rows[0]['scope'])} is used up: {_left(tx, rows[0])}" if rows else None


def require(tx: Reader, task_id: int, *, is_priced: bool) -> None:
    """Refuse a request of an attempt whose budget is used up, or cannot be kept.

    Args:
        is_priced: whether the price of the model is known.

    Raises:
        Refused: ``BUDGET_EXCEEDED``, ``PRICE_UNKNOWN``.
    """
    for row in tx.all(SQL.of_task, task_id=task_id):
        named = _named(row["scope"])
        if {*row["used_up"].split()} & {*SPENT_BY_REQUESTS}:
            text = f"The budget of {named} is used up: {_left(tx, row)}. A person has to raise it; stop working."
            raise Refused("BUDGET_EXCEEDED", text)
        if row["usd"] is not None and not is_priced:
            text = (
                f"The budget of {named} is in US dollars, and the price of this model is not known. Add it to "
                "prices.yaml, or set the budget in tokens: `workbench budgets set`."
            )
            raise Refused("PRICE_UNKNOWN", text)


def _compare(tx: Tx, row: Row) -> None:
    """Mark what of a budget is nearly, and wholly, spent, and ask the person if work waits for it."""
    spent = _spent(tx, row["scope"])
    used_up = rules.reached(spent, row)
    nearly = [name for name in rules.reached(spent, row, rules.NEARLY) if name not in used_up]
    before = {*row["used_up"].split()}
    for kind, names, known in (("budget.nearly", nearly, row["nearly"].split()), ("budget.exceeded", used_up, before)):
        if new := [name for name in names if name not in known and not (kind == "budget.nearly" and name in before)]:
            amounts = {"limits": _limits(row), "spent": {name: spent[name] for name in LIMITS}}
            tx.emit(kind, f"budget:{row['scope']}", names=new, **amounts)
    if (" ".join(nearly), " ".join(used_up)) != (row["nearly"], row["used_up"]):
        tx.run(SQL.mark, scope=row["scope"], nearly=" ".join(nearly), used_up=" ".join(used_up))
    _ask_or_withdraw(tx, row, used_up, spent)


def _ask_or_withdraw(tx: Tx, row: Row, used_up: list[str], spent: Mapping[str, float]) -> None:
    scope = row["scope"]
    question = approvals.open_question(tx, KIND, f"budget:{scope}")
    waiting = _held_up(tx, scope, used_up) if not row["stopped"] else []
    if question is not None and not waiting:
        approvals.withdraw(tx, question, "Nothing waits for this budget any more.")
    elif question is None and waiting:
        payload = {
            "scope": scope,
            "what": _named(scope),
            "used_up": used_up,
            "limits": _limits(row),
            "stated": json.loads(row["stated"]),
            "spent": {name: spent[name] for name in LIMITS},
            "tasks": len(waiting),
        }
        approvals.ask(tx, KIND, f"budget:{scope}", payload, requester=SYSTEM.name)


@duty("asking about budgets", 2.0, wakes=True)
async def ask_about_used_up(ctx: Ctx) -> None:
    """Ask about budgets that are used up once work waits for them, and no longer when none does."""

    def due(tx: Reader) -> list[Row]:
        return [
            row
            for row in tx.all(SQL.used_up)
            if bool(approvals.open_question(tx, KIND, f"budget:{row['scope']}"))
            != bool(_held_up(tx, row["scope"], row["used_up"].split()))
        ]

    def change(tx: Tx) -> None:
        for one in rows:
            if row := tx.one(SQL.get, scope=one["scope"]):
                _compare(tx, row)

    if rows := await ctx.read(due):
        await ctx.of(SYSTEM).write(change)


@decision_handler(KIND)
async def decide_budget(ctx: Ctx, question: ApprovalInfo, approved: bool, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Approved: the limits are raised to those chosen, or once more by what was stated; rejected: nothing more begins.

    Raises:
        BadInput: ``BUDGET_NOT_RAISED``, ``INVALID_ARGUMENTS``.
    """
    approvals.check_choices(choices, {*LIMITS} if approved else {"reason"})
    scope, person = question.payload["scope"], approvals.person_of(ctx)
    chosen = _chosen(choices) if choices and approved else {}

    def change(tx: Tx) -> dict[str, Any]:
        row = _require(tx, scope)
        if not approved:
            outcome = {"scope": scope, "what": _named(scope), "state": "stopped"}
            tx.run(SQL.stop, scope=scope)
            return approvals.decide(tx, question, "rejected", str(choices["reason"]), outcome, person)
        limits = _limits(row) | (chosen or _once_more(row))
        if left := rules.reached(_spent(tx, scope), limits):
            text = f"The budget of {_named(scope)} would still be used up: {_left(tx, row, left)}. Choose more."
            raise BadInput("BUDGET_NOT_RAISED", text)
        outcome = {"scope": scope, "what": _named(scope), "state": "raised", "limits": limits}
        stored = approvals.decide(tx, question, "approved", "", outcome, person)
        tx.run(SQL.raise_limits, limits, scope=scope)
        _compare(tx, _require(tx, scope))
        tx.emit("budget.set", f"budget:{scope}", limits=limits)
        return stored

    return await ctx.write(change)


def _chosen(choices: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return rules.in_short(choices) or {}
    except ValueError as error:
        raise BadInput("INVALID_ARGUMENTS", f"The budget cannot be so: {error}.", problems=[str(error)]) from None


def _once_more(row: Row) -> dict[str, Any]:
    """The limits, those that are used up raised by what was stated."""
    stated = json.loads(row["stated"])
    return {name: row[name] + stated.get(name, 0) for name in row["used_up"].split()}


def _require(tx: Reader, scope: str) -> Row:
    row = tx.one(SQL.get, scope=scope)
    if row is None:
        raise NotFound("BUDGET_NOT_FOUND", f"There is no budget of {scope!r}.")
    return row


def _spent(tx: Reader, scope: str) -> dict[str, Any]:
    """What is spent of a budget, and how many requests have no known cost."""
    kind, ref = _parts(scope)
    query = {"project": SQL.spent_by_project, "plan": SQL.spent_by_plan, "task": SQL.spent_by_task}[kind]
    row = tx.one(query, **({} if kind == PROJECT else {"ref": ref}))
    assert row is not None
    return dict(row) | {"usd": round(float(row["usd"]), 9)}  # sums of 0.1 are to reach 1.0


def _open(tx: Reader, scope: str) -> list[Row]:
    kind, ref = _parts(scope)
    query = {"project": SQL.open_in_project, "plan": SQL.open_in_plan, "task": SQL.open_in_task}[kind]
    return tx.all(query, **({} if kind == PROJECT else {"ref": ref}))


def _held_up(tx: Reader, scope: str, used_up: Collection[str]) -> list[Row]:
    """The tasks that cannot be begun, or whose attempts get no answers of models."""
    refuses = {*used_up} & {*SPENT_BY_REQUESTS}
    return [one for one in _open(tx, scope) if one["status"] == TaskState.PENDING or refuses] if used_up else []


def at_work(tx: Reader) -> list[str]:
    """The agents that hold tasks whose requests are refused."""
    rows = [one for row in tx.all(SQL.list) for one in _held_up(tx, row["scope"], row["used_up"].split())]
    return sorted({one["assigned_agent_id"] for one in rows if one["status"] != TaskState.PENDING})


def _limits(row: Row | Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in LIMITS}


def _named(scope: str) -> str:
    kind, ref = _parts(scope)
    return "the project" if kind == PROJECT else f"{kind} {ref}"


def _left(tx: Reader, row: Row, names: list[str] | None = None) -> str:
    """What is spent of the limits that are used up, in words."""
    names = names or row["used_up"].split()
    return f"{rules.in_words(_spent(tx, row['scope']), names)} of {rules.in_words(_limits(row), names)}"


def _info(tx: Reader, row: Row) -> BudgetInfo:
    spent = _spent(tx, row["scope"])
    used_up = row["used_up"].split()
    waiting = (
        [one["task_id"] for one in _open(tx, row["scope"]) if one["status"] == TaskState.PENDING] if used_up else []
    )
    return BudgetInfo(
        scope=row["scope"],
        **_limits(row),
        **{f"spent_{name}": spent[name] for name in LIMITS},
        unpriced=spent["unpriced"],
        nearly=row["nearly"].split(),
        used_up=used_up,
        stopped=bool(row["stopped"]),
        stated=json.loads(row["stated"]),
        stated_by=row["stated_by"],
        waiting=waiting[:SHOWN_TASKS],
    )
