"""The end of an answer: how it ended is recorded, with the rest of its frames, in one transaction."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from workbench.errors import Unavailable, WorkbenchError
from workbench.ops import Ctx
from workbench.ops.duties import recovers
from workbench.providers.frames import AnswerUsage, End
from workbench.providers.running import AnswerEnding, RunningAnswer
from workbench.rules.chat import transcript as rules
from workbench.rules.chat.transcript import FrameKind, Transcript
from workbench.services import servers
from workbench.services.conversations import frames, requests, turns
from workbench.services.conversations.frames import NewFrame
from workbench.services.conversations.recorder import FrameRecorder
from workbench.services.conversations.requests import SentRequest
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside
from workbench.trust.known_secrets import KnownSecrets

SQL = beside(__file__)
TRIES = 30
PAUSE_SECONDS = 2.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """How an answer ended.

    Args:
        usage: None: nothing is known.
        end: why the model ended it, for one that is completed.
        cut_at: the tokens at which its limit cut it.
        history: the conversation with it, as the engine keeps it, for one that is completed.
    """

    state: Literal["completed", "stopped", "interrupted", "failed"]
    usage: AnswerUsage | None = None
    end: End | None = None
    cut_at: int | None = None
    error: WorkbenchError | None = None
    history: Mapping[str, Any] | None = None


def interrupted(usage: AnswerUsage | None) -> AnswerOutcome:
    """The outcome of an answer whose server ended."""
    error = Unavailable("ANSWER_INTERRUPTED", "The server ended before the answer did. Try again.")
    return AnswerOutcome("interrupted", usage, error=error)


def from_outside(running: RunningAnswer, usage: AnswerUsage | None) -> AnswerOutcome:
    """The outcome of an answer that was stopped, or whose server ended."""
    if running.ending is AnswerEnding.STOPPED:
        return AnswerOutcome("stopped", usage)
    return interrupted(usage)


async def record(
    ctx: Ctx, running: RunningAnswer, recorder: FrameRecorder, outcome: AnswerOutcome, sent: Sequence[SentRequest]
) -> None:
    """Record how an answer ended, with the requests to its model; retry for a minute while the store fails."""
    pending, conversation_id, turn_id = recorder.take(), running.conversation_id, running.turn_id
    masked = replace(outcome, history=without_secrets(ctx.secrets, outcome.history))

    def change(tx: Tx) -> None:
        if record_end(tx, conversation_id, turn_id, masked, recorder.transcript, pending):
            requests.add(tx, conversation_id, turn_id, sent)

    for attempt in range(1, TRIES + 1):
        try:
            await ctx.write(change)
            break
        except Unavailable as error:
            if attempt == TRIES or running.ending is AnswerEnding.INTERRUPTED:
                log.error("the end of the answer %s could not be recorded: %s", turn_id, error)
                return
            await asyncio.sleep(PAUSE_SECONDS)
    ctx.local.answers.wake(conversation_id)


def without_secrets(secrets: KnownSecrets, history: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A history, changed in place: without secrets in what the model and its tools wrote; what people wrote stays."""
    if history is None:
        return None
    prompts = ("user-prompt", "system-prompt")
    parts = [part for message in history["messages"] for part in message["parts"] if part["part_kind"] not in prompts]
    for part in parts:
        for name in part.keys() & {"content", "args"}:
            before, part[name] = part[name], _mask(secrets, part[name])
            if part[name] != before and "signature" in part:
                part["signature"] = None  # it would not fit any more
    return history


def _mask(secrets: KnownSecrets, value: Any) -> Any:
    """A part of a history without secrets; the pictures in it have none."""
    if not isinstance(value, list):
        return secrets.masked(value)
    return [item if isinstance(item, dict) and item.get("kind") == "binary" else secrets.masked(item) for item in value]


def record_end(
    tx: Tx,
    conversation_id: str,
    turn_id: str,
    outcome: AnswerOutcome,
    transcript: Transcript,
    pending: list[NewFrame],
) -> bool:
    """Record the end of an answer with its last frames, unless it has ended before, or its conversation was deleted."""
    usage = outcome.usage or AnswerUsage(None, None, 0, None)
    values = {
        "state": outcome.state,
        "content": transcript.text,
        "parts": turns.PARTS.dump_json(transcript.parts(ended=True)).decode(),
        "history": json.dumps(outcome.history) if outcome.history is not None else None,
        "error_code": outcome.error.code if outcome.error else None,
        "error": outcome.error.message if outcome.error else None,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "requests": usage.requests,
        "unmeasured": usage.unmeasured,
        "cost_usd": None if usage.cost_usd is None else float(usage.cost_usd),
        "end": outcome.end,
        "cut_at": outcome.cut_at,
    }
    if not tx.run(turns.SQL.end, values, id=turn_id, now=tx.now):
        return False
    frames.add(tx, conversation_id, turn_id, [*pending, _last(conversation_id, turn_id, outcome, values)])
    tx.run(SQL.forget_histories, conversation=conversation_id)
    tx.run(SQL.touch, conversation=conversation_id, now=tx.now)
    about = {name: values[name] for name in ("state", "error_code", "input_tokens", "output_tokens", "cost_usd")}
    tx.emit("answer.ended", f"conversation:{conversation_id}", turn_id=turn_id, **about)
    return True


def _last(conversation_id: str, turn_id: str, outcome: AnswerOutcome, values: Mapping[str, Any]) -> NewFrame:
    """The frame that ends an answer."""
    about = {"message_id": turn_id, "conversation_id": conversation_id, "state": outcome.state}
    if outcome.error is not None:
        reason = {key: value for key, value in outcome.error.as_dict().items() if key != "status"}
        return NewFrame(FrameKind.ERROR, about | reason)
    usage = {name: values[name] for name in ("input_tokens", "output_tokens", "requests", "unmeasured", "cost_usd")}
    is_completed = outcome.state == "completed"
    remark = rules.remark(outcome.end, outcome.cut_at, values["content"]) if is_completed else None
    end = {"end": outcome.end, "cut_at": outcome.cut_at, "remark": remark, "usage": usage}
    return NewFrame(FrameKind.COMPLETE, about | end)


@recovers
async def recover(ctx: Ctx) -> None:
    """Record answers as interrupted that are running, but neither here nor on another machine whose server runs."""
    await ctx.write(lambda tx: _settle(tx, ctx, None))


def settle_lost(tx: Tx, ctx: Ctx, conversation_id: str) -> None:
    """Record the answer of a conversation as interrupted, if it runs, but not here."""
    _settle(tx, ctx, conversation_id)


def machine_of(tx: Reader, ctx: Ctx, conversation_id: str) -> str | None:
    """The other machine whose server makes the answer of a conversation; None: none does."""
    elsewhere = servers.running_elsewhere(tx, ctx)
    of = (row["server"] for row in tx.all(turns.SQL.running) if row["conversation_id"] == conversation_id)
    return next((elsewhere[server] for server in of if server in elsewhere), None)


def _settle(tx: Tx, ctx: Ctx, only: str | None) -> None:
    elsewhere = servers.running_elsewhere(tx, ctx)
    for row in tx.all(turns.SQL.running):
        conversation_id = row["conversation_id"]
        if (
            row["server"] not in elsewhere
            and only in (None, conversation_id)
            and not ctx.local.answers.is_here(conversation_id)
        ):
            transcript = turns.transcript_of(tx, row["id"])
            usage = AnswerUsage(None, None, 1, None, unmeasured=1) if row["model"] else None  # once at least
            record_end(tx, conversation_id, row["id"], interrupted(usage), transcript, [])
