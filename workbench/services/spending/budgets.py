"""Budgets: what the project, a plan, session, persona or run, or a task with its subtasks may spend.

A request, and an attempt, is in the budgets of all scopes that count it (`spent`). What is booked is compared with them
in the same transaction; then only the marks are read: by the gateway of models before a request, and by agents that
claim tasks. Of a budget that is used up the person is asked once.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from workbench.errors import BadInput, Hint, NotFound, Refused
from workbench.model import Level, Wire
from workbench.ops import SYSTEM, Columns, Command, Ctx, RestRoute, op
from workbench.ops.duties import duty, prepares
from workbench.rules import budgets as rules
from workbench.rules.budgets import LIMITS
from workbench.rules.naming import resolve_ref
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo, decision_handler
from workbench.services.spending import spent as sums
from workbench.services.spending.spent import PROJECT
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
KIND = "budget"
"""The kind of the questions of budgets that are used up."""
SPENT_BY_REQUESTS = ("tokens", "usd")
SPENT_AT_WORK = (*SPENT_BY_REQUESTS, "seconds")
StatedBy = Literal["settings", "plan", "persona", "person"]
NUMBERED = ("task", "run")
MISSING = {
    "plan": ("PLAN_NOT_FOUND", Hint("list_plans", "{} lists the plans.")),
    "session": ("SESSION_NOT_FOUND", Hint("list_sessions", "{} lists the sessions.")),
    "persona": ("PERSONA_NOT_FOUND", Hint("get_personas", "{} lists the personas.")),
    "run": ("RUN_NOT_FOUND", Hint("list_runs", "{} lists the runs.")),
    "task": ("TASK_NOT_FOUND", Hint("list_tasks", "{} lists the tasks.")),
}
"""What has budgets, besides the project: the code of one that there is not, and what lists those that there are."""
SHOWN_TASKS = 10_000


class BudgetInfo(Wire):
    """A budget of `what`, in words, and what is spent of it.

    `stated` is what was said; the limits in `tokens`, `usd`, `attempts` and `seconds` may have been raised since.
    `used_up` and `nearly` (80 %) name limits; `stopped`: the person wants no more of it.

    `unpriced` requests have no known cost, which `spent_usd` does not contain. `waiting` are the tasks that nobody may
    claim because it is used up.
    """

    scope: str
    what: str
    tokens: int | None
    spent_tokens: int
    usd: float | None
    spent_usd: float
    attempts: int | None
    spent_attempts: int
    seconds: float | None
    spent_seconds: float
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
        "what=budget spent_tokens=tokens tokens=of spent_usd=usd usd=of spent_attempts=attempts attempts=of "
        "spent_seconds=seconds seconds=of nearly used_up stopped",
        "There is no budget.",
    )

    budgets: list[BudgetInfo]


class BudgetSet(Wire):
    """A budget that was set, or removed. `warning`: what it does not cover, and what to do; empty: nothing."""

    scope: str
    words: str
    warning: str


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command=Command("budgets list"),
    rest=RestRoute("GET", "/budgets", rows="budgets"),
    refreshed_by="budget",
)
async def list_budgets(ctx: Ctx) -> Budgets:
    """List what may be spent, and what is spent of it, by the project, plans, sessions, personas, runs and tasks."""
    return await ctx.read(lambda tx: Budgets(budgets=[_info(tx, row) for row in tx.all(SQL.list)]))


@op(allow=Level.OPERATOR, tool=False, command=Command("budgets set SCOPE", "{scope} may spend {words}. {warning}"))
async def set_budget(
    ctx: Ctx,
    scope: Annotated[
        str,
        Field(
            max_length=300,
            description="project, plan:NAME, session:NAME, persona:NAME, run:ID, or task:ID with its subtasks.",
        ),
    ],
    tokens: Annotated[int | None, Field(ge=0, le=10**15, description="Tokens of all kinds; null: any.")] = None,
    usd: Annotated[float | None, Field(ge=0, le=1e9, description="US dollars; null: any.")] = None,
    attempts: Annotated[int | None, Field(ge=0, le=10**6, description="Attempts at tasks; null: any.")] = None,
    seconds: Annotated[
        float | None, Field(ge=0, le=1e9, description="Time in which at least one attempt is under way; null: any.")
    ] = None,
) -> BudgetSet:
    """Set what something may spend, instead of what was said before; without a limit, anything.

    Raises:
        BadInput: ``BAD_SCOPE``, ``AMBIGUOUS_NAME``. NotFound: ``PLAN_NOT_FOUND``, ``TASK_NOT_FOUND``,
            ``SESSION_NOT_FOUND``, ``PERSONA_NOT_FOUND``, ``RUN_NOT_FOUND``.
    """
    limits = {"tokens": tokens, "usd": usd, "attempts": attempts, "seconds": seconds}
    stated = {name: value for name, value in limits.items() if value is not None}

    def change(tx: Tx) -> BudgetSet:
        target = _resolved(tx, scope)
        state(tx, target, stated or None, "person")
        row = tx.one(SQL.get, scope=target)
        warning = _warning_of_unpriced(tx, row) if row and usd is not None and row["unpriced"] else ""
        return BudgetSet(scope=scope, words=rules.in_words(limits) or "what it likes", warning=warning)

    return await ctx.write(change)


def _parts(scope: str) -> dict[str, Any]:
    """The kind of a scope, and its name or number, for queries."""
    kind, _, ref = scope.partition(":")
    return {"kind": kind, "ref": ref, "number": int(ref) if kind in NUMBERED else None}


def _resolved(tx: Reader, scope: str) -> str:
    """The scope that a text names."""
    kind, _, ref = scope.partition(":")
    if scope == PROJECT:
        return scope
    is_number = ref.isascii() and ref.isdecimal() and len(ref) < 19
    if kind not in MISSING or not ref or (kind in NUMBERED and not is_number):
        text = "Write project, plan:NAME, session:NAME, persona:NAME, run:ID or task:ID."
        raise BadInput("BAD_SCOPE", f"Nothing has the budget {scope!r}. {text}")
    queries = {"plan": SQL.plan, "session": SQL.session, "persona": SQL.persona, "run": SQL.run, "task": SQL.task}
    rows = tx.all(queries[kind], {"number": int(ref)} if kind in NUMBERED else {"ref": ref})
    row = resolve_ref(rows, ref, kind) if kind == "session" else rows[0] if rows else None
    if row is None:
        code, hint = MISSING[kind]
        raise NotFound(code, f"There is no {kind} {ref!r}.", hint)
    return f"{kind}:{row['name' if kind == 'plan' else 'id']}"


def _warning_of_unpriced(tx: Reader, row: Row) -> str:
    models = ", ".join(one["model"] for one in tx.all(SQL.unpriced_models, _parts(row["scope"])))
    return (
        f"{row['unpriced']:,} of its requests have no known cost ({models or 'by unknown models'}), and further ones "
        "are refused: add the prices to prices.yaml, or set the budget in tokens."
    )


def declared(tx: Reader, scope: str) -> dict[str, Any] | None:
    """What the settings, a plan or a persona say of a budget; None: nothing. A person may have set another since."""
    row = tx.one(SQL.said, scope=scope)
    return json.loads(row["declared"]) if row and row["declared"] else None


def in_dollars(tx: Reader) -> list[tuple[str, str]]:
    """The scopes, each also in words, with a budget in US dollars."""
    return [(row["scope"], _named(row)) for row in tx.all(SQL.list) if row["usd"] is not None]


def is_stated(tx: Reader, scope: str) -> bool:
    """Whether there is a budget."""
    return tx.one(SQL.get, scope=scope) is not None


def state(tx: Tx, scope: str, budget: Mapping[str, Any] | None, by: StatedBy) -> None:
    """Set or remove a budget. What is spent already counts. What is no longer declared is not removed if a person has
    set another since.
    """
    row, limits, before = tx.one(SQL.said, scope=scope), dict.fromkeys(LIMITS) | dict(budget or {}), declared(tx, scope)
    is_of_person = row is not None and row["stated_by"] == "person"
    if by != "person" and budget is None and is_of_person:
        tx.run(SQL.undeclare, scope=scope)
        return
    if question := approvals.open_question(tx, KIND, f"budget:{scope}"):
        approvals.withdraw(tx, question, "The budget was set anew.")
    known = before if by == "person" else budget
    if budget is None and known is None:
        tx.run(SQL.remove, scope=scope)
    else:
        stated = {"stated": json.dumps(dict(budget or {})), "declared": json.dumps(dict(known)) if known else None}
        tx.run(SQL.put, {**limits, **stated}, scope=scope, by=by, now=tx.now)
    if budget is None:
        tx.run(SQL.mark, scope=scope, nearly="", used_up="")
    else:
        _compare(tx, _require(tx, scope))
    tx.emit("budget.set", f"budget:{scope}", limits=budget)


def forget(tx: Tx, scope: str) -> None:
    """Remove the budget of what is no more, if it has one."""
    if question := approvals.open_question(tx, KIND, f"budget:{scope}"):
        approvals.withdraw(tx, question, "What it is of is no more.")
    if tx.run(SQL.remove, scope=scope):
        tx.emit("budget.set", f"budget:{scope}", limits=None)


@prepares
async def state_of_settings(ctx: Ctx) -> None:
    """Set the budget of the project that the settings state, if they state another than before."""
    given = {name: getattr(ctx.settings, f"budget_{name}") for name in LIMITS}
    wanted = {name: value for name, value in given.items() if value is not None} or None
    if wanted != await ctx.read(lambda tx: declared(tx, PROJECT)):
        await ctx.of(SYSTEM).write(lambda tx: state(tx, PROJECT, wanted, "settings"))


@prepares
@duty("setting the budgets of personas", 2.0, wakes=True, serving=False)
async def state_of_personas(ctx: Ctx) -> None:
    """Set the budgets that personas state, if they state others than before."""

    def change(tx: Tx) -> None:
        for row in tx.all(SQL.personas):
            state(tx, f"persona:{row['id']}", json.loads(row["budget"]) if row["budget"] else None, "persona")

    if await ctx.read(lambda tx: tx.all(SQL.personas)):
        await ctx.of(SYSTEM).write(change)


def follow(tx: Tx, scopes: Sequence[str]) -> None:
    """Compare what is spent in scopes with their budgets, after something was booked there or has ended."""
    for row in _budgets(tx, scopes):
        _compare(tx, row)


def follow_task(tx: Tx, task_id: int, agent: str) -> None:
    """Compare what is spent with the budgets that an agent's attempt at a task was in."""
    follow(tx, sums.place(tx, task_id, agent).scopes)


def _budgets(tx: Reader, scopes: Sequence[str]) -> list[Row]:
    return tx.all(SQL.of_scopes, scopes=json.dumps(scopes))


def is_used_up(tx: Reader, task_id: int, agent: str | None) -> bool:
    """Whether the gateway refuses the requests of an agent's attempt at a task."""
    rows = _budgets(tx, sums.place(tx, task_id, agent).scopes) if tx.one(SQL.any_used_up) else []
    return any(_names(row, SPENT_BY_REQUESTS) for row in rows)


def obstacle(tx: Reader, task_id: int | None, agent: str) -> str | None:
    """Why an agent may not begin a task, in words; None: it may.

    Args:
        task_id: None: any task.
    """
    rows = _budgets(tx, sums.place(tx, task_id, agent).scopes) if tx.one(SQL.any_used_up) else []
    used_up = [row for row in rows if row["used_up"]]
    return f"the budget of {_named(used_up[0])} is used up: {_left(tx, used_up[0])}" if used_up else None


def require(tx: Reader, task_id: int, agent: str | None, *, is_priced: bool) -> None:
    """Refuse a request of an attempt whose budget is used up, or cannot be kept.

    Args:
        is_priced: whether the price of the model is known.

    Raises:
        Refused: ``BUDGET_EXCEEDED``, ``PRICE_UNKNOWN``.
    """
    for row in _budgets(tx, sums.place(tx, task_id, agent).scopes):
        named = _named(row)
        if _names(row, SPENT_BY_REQUESTS):
            text = f"The budget of {named} is used up: {_left(tx, row)}. A person has to raise it; stop working."
            raise Refused("BUDGET_EXCEEDED", text)
        if row["usd"] is not None and not is_priced:
            text = (
                f"The budget of {named} is in US dollars, and the price of this model is not known. Add it to "
                "prices.yaml, or set the budget in tokens: `workbench budgets set`."
            )
            raise Refused("PRICE_UNKNOWN", text)


def _names(row: Row, among: Collection[str]) -> list[str]:
    """The limits of a budget that are used up, of some."""
    return [name for name in row["used_up"].split() if name in among]


def _compare(tx: Tx, row: Row) -> None:
    """Mark what of a budget is nearly, and wholly, spent, and ask the person if work waits for it."""
    spent = _spent(tx, row)
    nearly, used_up = _marks(row, spent)
    before = {*row["used_up"].split()}
    for kind, names, known in (("budget.nearly", nearly, row["nearly"].split()), ("budget.exceeded", used_up, before)):
        if new := [name for name in names if name not in known and not (kind == "budget.nearly" and name in before)]:
            amounts = {"limits": _limits(row), "spent": spent}
            tx.emit(kind, f"budget:{row['scope']}", what=_named(row), names=new, **amounts)
    if (" ".join(nearly), " ".join(used_up)) != (row["nearly"], row["used_up"]):
        tx.run(SQL.mark, scope=row["scope"], nearly=" ".join(nearly), used_up=" ".join(used_up))
    _ask_or_withdraw(tx, row, used_up, spent)


def _marks(row: Row, spent: Mapping[str, float]) -> tuple[list[str], list[str]]:
    """The limits that are nearly, and wholly, spent."""
    used_up = rules.reached(spent, row)
    return [name for name in rules.reached(spent, row, rules.NEARLY) if name not in used_up], used_up


def _ask_or_withdraw(tx: Tx, row: Row, used_up: list[str], spent: Mapping[str, float]) -> None:
    scope: str = row["scope"]
    question = approvals.open_question(tx, KIND, f"budget:{scope}")
    waiting = _held_up(tx, scope, used_up) if not row["stopped"] else set()
    if question is not None and not waiting:
        approvals.withdraw(tx, question, "Nothing waits for this budget any more.")
    elif question is None and waiting:
        payload = {
            "scope": scope,
            "what": _named(row),
            "used_up": used_up,
            "limits": _limits(row),
            "stated": json.loads(row["stated"]),
            "spent": spent,
            "tasks": len(waiting),
        }
        approvals.ask(tx, KIND, f"budget:{scope}", payload, requester=SYSTEM.name)


@duty("asking about budgets", 2.0, wakes=True, once=True)
async def ask_about_used_up(ctx: Ctx) -> None:
    """Ask about budgets that are used up once work waits for them, and no longer when none does; see whether the time
    of others is used up.
    """

    def due(tx: Reader) -> list[Row]:
        later = [row for row in tx.all(SQL.running) if _marks(row, _spent(tx, row)) != _marked(row)]
        return later + [
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
    """Approved: the limits are raised to those chosen, or so that as much as was stated can be spent once more;
    rejected: nothing more begins.

    Raises:
        BadInput: ``BUDGET_NOT_RAISED``, ``INVALID_ARGUMENTS``.
    """
    approvals.check_choices(choices, {*LIMITS} if approved else {"reason"})
    scope, person = question.payload["scope"], approvals.person_of(ctx)
    chosen = _chosen(choices) if choices and approved else {}

    def change(tx: Tx) -> dict[str, Any]:
        row = _require(tx, scope)
        if not approved:
            outcome = {"budget": _named(row), "scope": scope, "state": "stopped"}
            tx.run(SQL.stop, scope=scope)
            tx.emit("budget.stopped", f"budget:{scope}")
            return approvals.decide(tx, question, "rejected", str(choices["reason"]), outcome, person)
        spent = _spent(tx, row)
        limits = _limits(row) | (chosen or _once_more(row, spent))
        if left := rules.reached(spent, limits):
            text = f"The budget of {_named(row)} would still be used up: {_left(tx, row, left)}. Choose more."
            raise BadInput("BUDGET_NOT_RAISED", text)
        outcome = {"budget": _named(row), "scope": scope, "state": "raised", "limits": limits}
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


def _once_more(row: Row, spent: Mapping[str, Any]) -> dict[str, Any]:
    """The limits that are used up, raised by what was stated: from what is spent, if that is more by far."""
    stated = json.loads(row["stated"])
    raised = {name: row[name] + stated.get(name, 0) for name in row["used_up"].split()}
    return {
        name: spent[name] + stated.get(name, 0) if limit <= spent[name] else limit for name, limit in raised.items()
    }


def _require(tx: Reader, scope: str) -> Row:
    row = tx.one(SQL.get, scope=scope)
    if row is None:
        raise NotFound("BUDGET_NOT_FOUND", f"There is no budget of {scope!r}.")
    return row


def _spent(tx: Reader, row: Row) -> dict[str, Any]:
    """What is spent of a budget."""
    of_requests = {"tokens": row["spent_tokens"], "usd": row["spent_usd"], "attempts": row["spent_attempts"]}
    return sums.amounts({**row, **of_requests}, tx.now)


def _marked(row: Row) -> tuple[list[str], list[str]]:
    """The marks that a budget has; see `_marks`."""
    return row["nearly"].split(), row["used_up"].split()


def _held_up(tx: Reader, scope: str, used_up: Collection[str]) -> set[int]:
    """The tasks that cannot be begun, or whose attempts get no answers of models."""
    waiting = {row["task_id"] for row in tx.all(SQL.waiting, _parts(scope))} if used_up else set()
    refused = {row["task_id"] for row in _under_way(tx, {scope})} if {*used_up} & {*SPENT_BY_REQUESTS} else set()
    return waiting | refused


def _under_way(tx: Reader, scopes: Collection[str]) -> list[Row]:
    """The attempts in any of some scopes that have not ended."""
    return [row for row in tx.all(SQL.under_way) if {*scopes} & sums.scopes_of_attempt(tx, row["task_id"])]


def at_work(tx: Reader) -> list[str]:
    """The agents that hold tasks whose budgets are used up, but for those of attempts, of which theirs is the last."""
    used_up = {row["scope"] for row in tx.all(SQL.list) if _names(row, SPENT_AT_WORK)}
    return sorted({row["agent_id"] for row in _under_way(tx, used_up)}) if used_up else []


def _limits(row: Row | Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in LIMITS}


def _named(row: Row) -> str:
    """What has a budget, in words."""
    if row["scope"] == PROJECT:
        return "the project"
    return f"session {row['session_name']}" if row["session_name"] else str(row["scope"]).replace(":", " ", 1)


def _left(tx: Reader, row: Row, names: list[str] | None = None) -> str:
    """What is spent of the limits that are used up, in words."""
    names = names or row["used_up"].split()
    return f"{rules.in_words(_spent(tx, row), names)} of {rules.in_words(_limits(row), names)}"


def _info(tx: Reader, row: Row) -> BudgetInfo:
    nearly, used_up = _marked(row)
    waiting = [one["task_id"] for one in tx.all(SQL.waiting, _parts(row["scope"]))] if used_up else []
    return BudgetInfo(
        scope=row["scope"],
        what=_named(row),
        **_limits(row),
        **{f"spent_{name}": value for name, value in _spent(tx, row).items()},
        unpriced=row["unpriced"],
        nearly=nearly,
        used_up=used_up,
        stopped=bool(row["stopped"]),
        stated=json.loads(row["stated"]),
        stated_by=row["stated_by"],
        waiting=waiting[:SHOWN_TASKS],
    )
