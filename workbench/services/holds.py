"""Holds: agents that claim no tasks for now, because what they work with fails.

A hold is of a scope: a key or login (`account:NAME`) with all agents that use it, a profile (`profile:NAME`), or one
agent (`agent:UID`). It ends at a time, or when the person answers its question. Whoever learns that a key is limited
calls `hold`: attempts that end (`workbench.services.tasks.attempts`), and the gateway of models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from workbench.errors import Hint, NotFound
from workbench.model import SECOND, Level, Micros, Wire, iso
from workbench.ops import SYSTEM, Columns, Command, Ctx, RestRoute, op
from workbench.ops.duties import duty, on_event
from workbench.rules.failures import ASKED, WAITING, FailureKind
from workbench.services import approvals
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

TRYING_SECONDS = 60
"""How long one agent works alone after a hold whose end was not known, before the others are let in."""
KIND = "failure"
"""The kind of the questions of holds that end when the person answers."""
REASON_LIMIT = 1_000
SIGNATURE_LIMIT = 200
SHOWN_ATTEMPTS = 20
_WHAT = {"account": "the account", "profile": "the profile", "agent": "the agent"}
_VARIES = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AttemptFailure:
    """How an attempt of an agent failed, as its supervisor tells.

    Args:
        kind: None: its command is no program whose output tells it.
        message: without secrets.
        until: when its provider allows more, in microseconds UTC, if it said so.
    """

    agent: str
    task_id: int
    attempt: int
    kind: FailureKind | None
    message: str
    until: int | None = None


class Hold(Wire):
    """A hold. `until` is when it ends; null: when the person has answered `approval_id`. `agents` is how many agents
    run that it keeps from claiming tasks."""

    scope: str
    what: str
    failure: str
    reason: str
    since: Micros
    until: Micros | None
    approval_id: int | None
    agents: int


class Holds(Wire):
    """The holds that there are, oldest first."""

    SHOWN: ClassVar = Columns(
        "holds", "what=held failure reason since until agents approval_id=question", "Nothing is held."
    )

    holds: list[Hold]


class EndedHold(Wire):
    """A hold that was ended."""

    scope: str


@op(
    allow=Level.PLANNER,
    reads=True,
    tool=False,
    command=Command("holds list"),
    rest=RestRoute("GET", "/holds", rows="holds"),
    refreshed_by="hold",
)
async def list_holds(ctx: Ctx) -> Holds:
    """List why agents claim no tasks for now: limits of their providers, keys that are refused, repeated failures."""
    rows = await ctx.read(lambda tx: tx.all(SQL.list))
    return Holds(holds=[_hold(row) for row in rows])


@op(
    allow=Level.OPERATOR,
    tool=False,
    command=Command("holds end SCOPE", "Agents of {scope} claim tasks again."),
)
async def end_hold(
    ctx: Ctx, scope: Annotated[str, Field(max_length=300, description="Its scope; see list_holds.")]
) -> EndedHold:
    """End a hold before its time: the agents claim tasks again at once, and its question is withdrawn."""

    def change(tx: Tx) -> None:
        row = tx.one(SQL.get, scope=scope)
        if row is None or row["ended"]:
            raise NotFound(
                "HOLD_NOT_FOUND", f"Nothing is held for {scope!r}.", Hint("list_holds", "{} lists the holds.")
            )
        if row["approval_id"] is not None and (question := approvals.find(tx, row["approval_id"])):
            approvals.withdraw(tx, question, "The hold was ended.")
        release(tx, scope)

    await ctx.write(change)
    return EndedHold(scope=scope)


@on_event("hold.ended")
def tell_gateway(ctx: Ctx, event: Row) -> None:
    """Have the requests to models that wait for the end of a hold look again."""
    ctx.local.gateway.look_again()


def limit(tx: Reader, account: str) -> int | None:
    """When the last limit of an account passes, or has passed, in microseconds UTC; None: there is none."""
    row = tx.one(SQL.get, scope=f"account:{account}")
    return row["until"] if row else None


def enlist(tx: Tx, agent: str, profile: str, account: str | None) -> None:
    """Record what an agent (`agent_uid`) works with.

    Args:
        account: names its key or login, without telling it; None: it is not known.
    """
    tx.run(SQL.enlist, agent=agent, profile=profile, account=account)


def active(tx: Reader, agent: str) -> Row | None:
    """The hold that keeps an agent (`agent_uid`) from claiming tasks longest; None: it may claim."""
    return tx.one(SQL.active, agent=agent, now=tx.now, trying_since=tx.now - TRYING_SECONDS * SECOND)


def words(row: Row) -> str:
    """Until when a hold keeps an agent from claiming, and why, in words."""
    first = row["reason"].partition("\n")[0].rstrip(".")
    if row["passed"]:
        return f"while another agent tries whether this has passed: {first}"
    return f"until {iso(row['until']) if row['until'] is not None else 'a person has answered'}: {first}"


def agents_of(tx: Reader, scope: str) -> list[Row]:
    """The agents of a scope, with their ids and names."""
    return tx.all(SQL.agents_of, scope=scope)


def hold(tx: Tx, settings: Settings, scope: str, kind: FailureKind, reason: str, until: int | None = None) -> int:
    """Have no agent of a scope claim a task until a time, or for a pause that grows with each; when it ends.

    Args:
        until: in microseconds UTC; None: it is not known.
    """
    row = tx.one(SQL.get, scope=scope)
    if row is not None and not row["ended"] and row["until"] is None:
        return tx.now  # the person is asked already
    waits = row["waits"] if row else 0
    if row is not None and not row["ended"] and row["until"] > tx.now and until is None:
        return int(row["until"])  # attempts that were under way tell the same
    pause = min(settings.hold_base_seconds * 2.0 ** min(waits, 32), settings.hold_cap_seconds) * SECOND
    latest = tx.now + int(settings.hold_longest_seconds * SECOND)
    ends = min(max(until, tx.now + SECOND), latest) if until is not None else tx.now + int(pause)
    if row is not None and not row["ended"] and not waits:  # a limit that was told is not over because another one is
        ends = max(ends, row["until"])
    values = {"scope": scope, "failure": str(kind), "reason": reason[:REASON_LIMIT], "now": tx.now, "until": ends}
    tx.run(SQL.put, values, approval=None, waits=waits if until is not None else waits + 1)
    tx.emit("hold.begun", f"hold:{scope}", failure=str(kind), until=ends, reason=reason[:500])
    return ends


def release(tx: Tx, scope: str) -> None:
    """End a hold, and forget the failures that led to it."""
    tx.run(SQL.forget, scope=scope)
    tx.run(SQL.forget_streak, scope=scope)
    tx.emit("hold.ended", f"hold:{scope}")


def note_success(tx: Tx, agent: str) -> None:
    """Forget the failures of what an agent works with: an attempt of it has succeeded."""
    for scope in _scopes(tx, agent):
        tx.run(SQL.forget_streak, scope=scope)
        tx.run(SQL.forget_ended, scope=scope)


def note_failure(tx: Tx, settings: Settings, failure: AttemptFailure) -> int | None:
    """Take the consequences of a failed attempt for all agents that work with the same.

    Returns until when its task waits, in microseconds UTC, without using up a retry; None: the failure is the task's.
    """
    scopes = _scopes(tx, failure.agent)
    if failure.kind in WAITING:
        return hold(tx, settings, scopes[0], failure.kind, failure.message, failure.until)
    if failure.kind in ASKED:
        _ask(tx, scopes[0], failure, [[failure.task_id, failure.attempt]])
        return tx.now
    if len(scopes) > 1 and settings.breaker_failures:
        _count(tx, settings, scopes, failure)
    return None


def _scopes(tx: Reader, agent: str) -> list[str]:
    """The scopes of an agent, the widest first."""
    program = tx.one(SQL.program, agent=agent)
    if program is None:
        return [f"agent:{agent}"]
    account = [f"account:{program['account']}"] if program["account"] else []
    return [*account, f"profile:{program['profile']}", f"agent:{agent}"]


def _count(tx: Tx, settings: Settings, scopes: list[str], failure: AttemptFailure) -> None:
    """Count a failure, and ask the person once the same has come too often, of more than one task."""
    signature = f"{failure.kind or ''}:{_VARIES.sub('#', failure.message.partition(chr(10))[0])[:SIGNATURE_LIMIT]}"
    repeated: list[tuple[str, list[list[int]]]] = []
    for scope in scopes:
        row = tx.one(SQL.streak, scope=scope)
        before = json.loads(row["attempts"]) if row and row["signature"] == signature else []
        attempts = [*before, [failure.task_id, failure.attempt]][-SHOWN_ATTEMPTS:]
        tx.run(SQL.put_streak, scope=scope, signature=signature, attempts=json.dumps(attempts))
        if len(attempts) >= settings.breaker_failures and len({task for task, _ in attempts}) > 1:
            repeated.append((scope, attempts))
    if repeated:
        _ask(tx, *repeated[0][:1], failure, repeated[0][1])


def _ask(tx: Tx, scope: str, failure: AttemptFailure, attempts: list[list[int]]) -> None:
    """Hold a scope until the person has answered one question, which gets the evidence of all its failures."""
    question = approvals.open_question(tx, KIND, f"hold:{scope}")
    if question is not None:
        known = question.payload["attempts"]
        more = [one for one in attempts if one not in known]
        approvals.amend(tx, question, {**question.payload, "attempts": [*known, *more][-SHOWN_ATTEMPTS:]}, quiet=True)
        return
    kind, message = str(failure.kind or FailureKind.FAILED), failure.message[:REASON_LIMIT]
    what = _what(scope, _name(tx, scope))
    agents = len(agents_of(tx, scope))
    payload = {
        "scope": scope,
        "what": what,
        "failure": kind,
        "message": message,
        "attempts": attempts,
        "agents": agents,
    }
    approval_id = approvals.ask(tx, KIND, f"hold:{scope}", payload, requester=SYSTEM.name)
    row = tx.one(SQL.get, scope=scope)
    values = {"scope": scope, "failure": kind, "reason": message, "now": tx.now, "until": None}
    tx.run(SQL.put, values, approval=approval_id, waits=row["waits"] if row else 0)
    tx.emit("hold.begun", f"hold:{scope}", failure=kind, until=None, reason=message[:500], approval_id=approval_id)


@duty("ending holds", 1.0, once=True)
async def end_due(ctx: Ctx) -> None:
    """End the holds whose time is over."""
    if not await ctx.store.read_inline(lambda tx: tx.all(SQL.due, now=tx.now)):
        return

    def change(tx: Tx) -> None:
        for row in tx.all(SQL.due, now=tx.now):
            tx.run(SQL.end, scope=row["scope"])
            tx.emit("hold.ended", f"hold:{row['scope']}")

    await ctx.of(SYSTEM).write(change)


def _hold(row: Row) -> Hold:
    plain = {name: row[name] for name in Hold.model_fields if name != "what"}
    return Hold(**plain, what=_what(row["scope"], row["agent"]))


def _name(tx: Reader, scope: str) -> str | None:
    kind, _, rest = scope.partition(":")
    return next((row["name"] for row in agents_of(tx, scope)), rest) if kind == "agent" else None


def _what(scope: str, agent: str | None) -> str:
    """A scope in words."""
    kind, _, rest = scope.partition(":")
    return f"{_WHAT[kind]} {agent or rest}"


def outcome(question: Mapping[str, Any], *, goes_on: bool) -> dict[str, Any]:
    """The outcome of a question's answer."""
    return {"scope": question["scope"], "what": question["what"], "state": "resumed" if goes_on else "stopped"}
