"""The spans of a project's work by OpenTelemetry's conventions for generative AI: task, attempt, request to a model,
call of a tool.

Their ids follow from the project's seed and the ids of the rows, so a span that is sent again is the same span. A task
is a trace; one with a parent links to that. The conventions are those of `SCHEMA`; names that begin with `workbench.`
are this project's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA = "https://opentelemetry.io/schemas/1.44.0"
PROVIDERS = {"gemini": "gcp.gemini", "google": "gcp.gemini", "bedrock": "aws.bedrock"}
"""The providers that the conventions call otherwise."""
SECOND = 1_000_000

Attribute = str | int | float | bool
Attributes = Mapping[str, Attribute]


@dataclass(frozen=True, slots=True)
class SpanId:
    """A span's place: its trace and its own id there."""

    trace: int
    span: int

    @property
    def trace_hex(self) -> str:
        """The id of the trace, as collectors show it."""
        return f"{self.trace:032x}"

    @property
    def span_hex(self) -> str:
        """The id of the span, as collectors show it."""
        return f"{self.span:016x}"


@dataclass(frozen=True, slots=True)
class Span:
    """One span. Times are in microseconds.

    Args:
        is_client: it is a request to another system.
        error: why it failed, in a word; None: it did not.
        link: a span of another trace that it belongs to.
    """

    name: str
    id: SpanId
    parent: SpanId | None
    start: int
    end: int
    attributes: Attributes
    is_client: bool = False
    error: str | None = None
    link: SpanId | None = None


@dataclass(frozen=True, slots=True)
class SpanIds:
    """The ids of a project's spans."""

    seed: str

    def task(self, task_id: int, ending: int | None = None) -> SpanId:
        """The span of a task; with the event of a later end, when it was opened again."""
        again = () if ending is None else (ending,)
        return self._id(("task", task_id), ("task", task_id, *again))

    def attempt(self, task_id: int, attempt: int) -> SpanId:
        """The span of an attempt, in the trace of its task."""
        return self._id(("task", task_id), ("attempt", task_id, attempt))

    def request(self, row: Mapping[str, Any]) -> SpanId:
        """The span of a request to a model: a row of the ledger."""
        return self._id(_trace(row, "request", row["id"]), ("request", row["id"]))

    def call(self, row: Mapping[str, Any]) -> SpanId:
        """The span of a call of a tool."""
        return self._id(_trace(row, "call", row["id"]), ("call", row["id"]))

    def _id(self, trace: Sequence[object], span: Sequence[object]) -> SpanId:
        return SpanId(self._number(16, "trace", *trace), self._number(8, "span", *span))

    def _number(self, length: int, *of: object) -> int:
        digest = hashlib.sha256("\0".join(map(str, (self.seed, *of))).encode()).digest()
        return int.from_bytes(digest[:length], "big") or 1


def _trace(row: Mapping[str, Any], *alone: object) -> Sequence[object]:
    """What the trace of a request or a call is of: its task, its conversation, or itself."""
    if row["task_id"] is not None:
        return ("task", row["task_id"])
    return ("conversation", row["conversation_id"]) if row["conversation_id"] else alone


def _around(ids: SpanIds, row: Mapping[str, Any]) -> SpanId | None:
    """The span of the attempt, or the task, that a request or a call was for."""
    if row["task_id"] is None:
        return None
    return ids.task(row["task_id"]) if row["attempt"] is None else ids.attempt(row["task_id"], row["attempt"])


def of_task(ids: SpanIds, row: Mapping[str, Any], *, content: bool) -> Span:
    """The span of a task that has ended. Opened again since an earlier end, it is in that of the first."""
    again = row["event_id"] if row["ended_before"] else None
    about = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": row["name"] and f"{row['plan']}/{row['name']}",
        "workbench.task.id": row["id"],
        "workbench.task.status": row["status"],
        "workbench.task.persona": row["persona_id"],
        "workbench.task.attempts": row["attempt"],
        "workbench.plan": row["plan"],
        "workbench.session.id": row["session_id"],
    }
    return Span(
        name=f"task {row['id']}",
        id=ids.task(row["id"], again),
        parent=ids.task(row["id"]) if again is not None else None,
        start=row["created_at"],
        end=row["at"],
        attributes=_known(about | ({"workbench.task.title": row["title"]} if content else {})),
        error="task_failed" if row["status"] == "failed" else None,
        link=ids.task(row["parent_id"]) if row["parent_id"] is not None else None,
    )


def of_attempt(ids: SpanIds, row: Mapping[str, Any]) -> Span:
    """The span of an attempt that has ended, with the sums of its requests, or of what its program says if there are
    none."""
    about = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": row["agent_id"],
        "gen_ai.agent.name": row["agent"],
        "gen_ai.agent.version": row["definition_hash"],
        "workbench.task.id": row["task_id"],
        "workbench.attempt": row["attempt"],
        "workbench.attempt.outcome": row["outcome"],
        "workbench.agent.profile": row["profile"],
        "workbench.plan": row["plan"],
        "workbench.requests": row["requests"],
        "workbench.usage.source": "ledger" if row["requests"] else "program" if row["told"] else None,
    }
    failed = row["outcome"] in ("failed", "expired")
    return Span(
        name=f"invoke_agent {row['agent']}",
        id=ids.attempt(row["task_id"], row["attempt"]),
        parent=ids.task(row["task_id"]),
        start=row["claimed_at"],
        end=row["ended_at"],
        attributes=_known(about | used(row)),
        error=(row["error_class"] or f"attempt_{row['outcome']}") if failed else None,
    )


def of_request(ids: SpanIds, row: Mapping[str, Any]) -> Span:
    """The span of a request to a model."""
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider(row["provider"]),
        "gen_ai.request.model": row["model"],
        "gen_ai.conversation.id": row["conversation_id"],
        "gen_ai.agent.id": row["agent"],
        "gen_ai.response.time_to_first_chunk": row["first_byte_seconds"],
        "http.response.status_code": row["status"],
        "workbench.request.id": row["id"],
        "workbench.request.source": row["source"],
        "workbench.request.is_cut": bool(row["is_cut"]),
        "workbench.usage.is_estimated": bool(row["is_estimated"]),
        "workbench.task.id": row["task_id"],
        "workbench.attempt": row["attempt"],
    }
    return Span(
        name=f"chat {row['model']}" if row["model"] else "chat",
        id=ids.request(row),
        parent=_around(ids, row),
        start=row["at"],
        end=row["at"] + int((row["seconds"] or 0.0) * SECOND),
        attributes=_known(about | used(row)),
        is_client=True,
        error=row["error_code"],
    )


def of_call(ids: SpanIds, row: Mapping[str, Any], *, content: bool) -> Span:
    """The span of a call of a tool, within the request whose answer asked for it.

    Args:
        row: with `request_id`, that of the last request of its attempt before it; null: there is none.
    """
    about = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": row["tool_name"],
        "gen_ai.tool.call.id": row["id"],
        "gen_ai.tool.type": "extension" if row["server"] or row["kind"] == "program" else "function",
        "gen_ai.agent.id": row["agent"],
        "gen_ai.conversation.id": row["conversation_id"],
        "workbench.tool.server": row["server"],
        "workbench.tool.state": row["state"],
        "workbench.task.id": row["task_id"],
        "workbench.attempt": row["attempt"],
    }
    if content:
        about |= {"gen_ai.tool.call.arguments": row["arguments"], "gen_ai.tool.call.result": row["result"]}
    asked = None if row["request_id"] is None else ids.request({**row, "id": row["request_id"]})
    failed = row["state"] != "completed"
    return Span(
        name=f"execute_tool {row['tool_name']}",
        id=ids.call(row),
        parent=asked or _around(ids, row),
        start=row["requested_at"],
        end=row["ended_at"],
        attributes=_known(about),
        error=(row["error_code"] or row["state"]) if failed else None,
    )


def provider(name: str | None) -> str:
    """A provider as the conventions name it."""
    return PROVIDERS.get(name or "", name or "unknown")


def used(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a request or an attempt used."""
    return {
        "gen_ai.usage.input_tokens": input_of(row),
        "gen_ai.usage.cache_read.input_tokens": row["cached_tokens"],
        "gen_ai.usage.cache_creation.input_tokens": _sum(row["cache_write_tokens"], row["cache_write_hour_tokens"]),
        "gen_ai.usage.output_tokens": row["output_tokens"],
        "gen_ai.usage.reasoning.output_tokens": row["reasoning_tokens"],
        "workbench.cost.usd": row["cost_usd"],
    }


def input_of(row: Mapping[str, Any]) -> int | None:
    """All tokens of the input, cached ones among them, as the conventions count; None: they are not known."""
    names = ("input_tokens", "cached_tokens", "cache_write_tokens", "cache_write_hour_tokens")
    return _sum(*(row[name] for name in names))


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _known(attributes: Mapping[str, Any]) -> dict[str, Attribute]:
    return {name: value for name, value in attributes.items() if value is not None}
