"""The log of calls: a row each, and the events of it (spec 4).

`tool.requested`: a call waits for its permission. `tool.started` and `tool.completed`: it runs, and has ended, however
that was. `tool.abandoned`: a call that waited has ended without having been run. `tool.refused`: a call was refused
before it waited or ran. `tool.cancellation_requested`: the process that runs a call is to cancel it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.model import SECOND, iso
from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty, on_event, recovers
from workbench.providers.frames import AnswerUsage
from workbench.rules.tools.results import shortened
from workbench.rules.tools.surroundings import ProgressReport
from workbench.services import approvals
from workbench.services.tools.tool import ToolInfo, ToolInvocation, ToolKind
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
SUBJECT = "tool_call:"
MILLISECOND = SECOND // 1_000
REASON_OF_LOST = "The program that called the tool, or ran it, has ended."


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a call ended.

    Args:
        result: JSON text, with secrets masked.
        code: of the error, if it failed.
        version: of what ran, if that is known better than before.
        usage: of a model behind the tool.
        progress: the last report; None: what is stored holds.
        shown: the result with its pictures named, if it has any.
    """

    state: str
    result: str | None = None
    code: str | None = None
    version: str | None = None
    usage: AnswerUsage | None = None
    progress: ProgressReport | None = None
    shown: str | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The values of its columns; None: what is stored holds."""
        usage, last = self.usage, self.progress
        return {
            "state": self.state,
            "result": self.result,
            "code": self.code,
            "version": self.version,
            "input": usage.input_tokens if usage else None,
            "output": usage.output_tokens if usage else None,
            "cost": float(usage.cost_usd) if usage and usage.cost_usd is not None else None,
            "reported": int(last is not None),
            "progress": last.progress if last else None,
            "total": last.total if last else None,
            "message": last.message if last else None,
        }


def add(
    tx: Tx,
    tool: ToolInfo,
    call: ToolInvocation,
    arguments: str,
    runner: str,
    limit: int,
    approval_id: int | None = None,
) -> None:
    """Record and announce a call that is made: it waits for its permission, or runs at once.

    Args:
        arguments: JSON text, with secrets masked.
        limit: how many characters of a text an event has.
        approval_id: the question about it, for which it waits.
    """
    _add(tx, tool, call, arguments, runner, approval_id, is_running=approval_id is None)
    row, shown = _row(tx, call.id), shortened(arguments, limit)
    if approval_id is None:
        _emit(tx, "tool.started", row, tool_input=shown)
    else:
        _emit(tx, "tool.requested", row, tool_input=shown, approval_id=approval_id)


def add_refused(
    tx: Tx, tool: ToolInfo, call: ToolInvocation, arguments: str, runner: str, how: CallEnd, limit: int
) -> None:
    """Record and announce a call that was refused before it waited or ran; see `add`."""
    _add(tx, tool, call, arguments, runner, None, is_running=False)
    tx.run(SQL.end, how.columns, id=call.id, now=tx.now)
    failure = {"is_error": True, "state": how.state, "error_code": how.code}
    _emit(tx, "tool.refused", _row(tx, call.id), tool_input=shortened(arguments, limit), **failure)


def _add(
    tx: Tx,
    tool: ToolInfo,
    call: ToolInvocation,
    arguments: str,
    runner: str,
    approval_id: int | None,
    *,
    is_running: bool,
) -> None:
    definition, origin = call.scope.definition, call.scope.origin
    tx.run(
        SQL.add,
        id=call.id,
        tool=tool.name,
        source=tool.source,
        kind=tool.kind,
        server=tool.server,
        offerer=tool.offered_by.key,
        offerer_name=tool.offered_by.name,
        configuration=tool.offered_by.configuration,
        version=tool.ran_as,
        caller=tx.actor,
        agent=call.scope.caller.agent,
        conversation=call.scope.conversation_id,
        definition=definition.definition.metadata.id if definition else call.scope.caller.definition,
        hash=definition.hash if definition else None,
        arguments=arguments,
        origin_node=origin.node if origin else None,
        origin_call=origin.call_id if origin else None,
        origin_caller=origin.caller if origin else None,
        runner=runner,
        approval=approval_id,
        state="running" if is_running else "waiting",
        started=tx.now if is_running else None,
        now=tx.now,
    )


def is_of(tx: Reader, call_id: str, agent: str | None, kind: ToolKind) -> bool:
    """Whether a call is one of an agent (`agent_uid`) and of a kind."""
    row = tx.one(SQL.get, id=call_id)
    return row is not None and (row["agent_id"], row["kind"]) == (agent, kind)


def started(tx: Tx, tool: ToolInfo, call_id: str, limit: int) -> bool:
    """Record that a call that has waited runs; False if it has ended before.

    Args:
        tool: as it is now: another process may offer it than when it was asked about.
    """
    if not tx.run(SQL.start, id=call_id, offerer_name=tool.offered_by.name, version=tool.ran_as, now=tx.now):
        return False
    row = _row(tx, call_id)
    _emit(tx, "tool.started", row, tool_input=shortened(row["arguments"], limit))
    return True


def ended(tx: Tx, call_id: str, how: CallEnd, limit: int) -> Row | None:
    """Record how a call ended; its row, or None if that was recorded before, or the call was not."""
    if not tx.run(SQL.end, how.columns, id=call_id, now=tx.now):
        return None
    row = _row(tx, call_id)
    failure = {"is_error": how.state != "completed", "state": how.state, "error_code": how.code}
    if row["started_at"] is None:
        _emit(tx, "tool.abandoned", row, **failure)
        return row
    took = (tx.now - row["started_at"]) // MILLISECOND
    _emit(
        tx,
        "tool.completed",
        row,
        tool_result=shortened(how.shown or how.result or "", limit),
        duration_ms=took,
        **failure,
    )
    return row


def cancel_elsewhere(tx: Tx, call_id: str) -> None:
    """Have the process that runs a call cancel it, unless it has ended."""
    row = _row(tx, call_id)
    if row["ended_at"] is None:
        _emit(tx, "tool.cancellation_requested", row)


@on_event("tool.cancellation_requested")
def note_cancellation(ctx: Ctx, event: Row) -> None:
    """Cancel a call of this process, which another one has asked for."""
    ctx.local.running_calls.cancel(event["subject"].removeprefix(SUBJECT), event["actor"])


@recovers
@duty("interrupting lost calls", 5.0, share=0.05)
async def interrupt_lost(ctx: Ctx) -> None:
    """Record the interruption of calls whose program has ended, and withdraw the questions about them."""
    rows = await ctx.read(lambda tx: tx.all(SQL.unfinished))
    lost = [row for row in rows if ctx.local.running_calls.is_lost(row["id"], row["runner"])]
    if lost:
        limit = ctx.settings.tool_shown_chars
        await ctx.store.write(lambda tx: _interrupt(tx, lost, limit), actor=SYSTEM.name)


def _interrupt(tx: Tx, lost: list[Row], limit: int) -> None:
    for row in lost:
        if ended(tx, row["id"], CallEnd("interrupted", code="TOOL_INTERRUPTED"), limit):
            withdraw_questions(tx, row["id"], REASON_OF_LOST)


def withdraw_questions(tx: Tx, call_id: str, reason: str) -> None:
    """Withdraw the open questions about a call, and those that its server has asked."""
    for question in approvals.pending_about(tx, f"{SUBJECT}{call_id}"):
        approvals.withdraw(tx, question, reason)


def _row(tx: Tx, call_id: str) -> Row:
    row = tx.one(SQL.get, id=call_id)
    assert row is not None
    return row


def _emit(tx: Tx, kind: str, row: Row, **more: Any) -> None:
    tx.emit(
        kind,
        f"{SUBJECT}{row['id']}",
        session=row["session_id"],
        call_id=row["id"],
        tool_name=row["tool_name"],
        source=row["source"],
        kind=row["kind"],
        server=row["server"],
        offered_by=row["offered_by"],
        offerer_name=row["offerer_name"],
        version=row["version"],
        origin_node=row["origin_node"],
        origin_caller=row["origin_caller"],
        agent=row["agent"],
        requester=f"agent:{row['agent_id']}" if row["agent_id"] else None,
        task=row["task_id"],
        conversation_id=row["conversation_id"],
        timestamp=iso(tx.now),
        **more,
    )
