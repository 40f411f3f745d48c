"""Takes what the programs of agents tell of themselves by OTLP into the ledger and the transcript.

Who tells it is known by the token alone. What the gateway passes on is measured there: of the providers that it answers
for in an attempt, nothing is taken from here. What is told twice counts once.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from dataclasses import replace
from typing import Any

from workbench.errors import BadInput
from workbench.model import SECOND
from workbench.ops import Ctx
from workbench.rules.models import transcript as transcript_rules
from workbench.rules.telemetry import received
from workbench.rules.telemetry.received import Signal, Told, ToldMessages, ToldRequest
from workbench.services.models import transcripts
from workbench.services.spending import ledger
from workbench.services.spending.ledger import ModelSpending
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

OLDEST = 86_400 * SECOND
"""How long ago what is told may have been; of anything else, the time is when it was told."""
DEAREST = 1e9
LONGEST_SECONDS = 86_400.0
MOST_TOLD = 2_000
"""Of what one request tells, it is taken in one change, for which others wait."""
_FORMS = ("application/json", "application/x-protobuf", "application/protobuf")


async def receive(ctx: Ctx, signal: Signal, raw: bytes, form: str, coding: str) -> None:
    """Take one request of OTLP of an agent.

    Args:
        form, coding: the type of its content, and how that is compressed.

    Raises:
        BadInput: ``BAD_MESSAGE``, ``TOO_LARGE``, ``PROTOBUF_NOT_INSTALLED``. Unavailable: an error of the store.
    """
    told = await asyncio.to_thread(_told, ctx, signal, raw, form.partition(";")[0].strip().lower(), coding)
    if not told:
        return
    known = await ledger.usable_prices(ctx)
    attempt, agent, most = ctx.caller.attempt, ctx.caller.agent, ctx.settings.max_transcript_bytes

    def change(tx: Tx) -> None:
        answered = _answered_for(tx, attempt)
        taken, transcript = set[str](), _Transcript(tx, attempt, most)
        for one in told:
            if one.provider in answered:
                continue
            if isinstance(one, ToldMessages):
                transcript.add(one, is_new=one.key in taken)
            elif tx.one(SQL.has, agent=agent, report=one.key) is None:
                ledger.add(tx, _spending(one, agent, attempt, tx.now), known)
                taken.add(one.key)

    await ctx.write(change, durable=False)


class _Transcript:
    """The transcript of an attempt, to which a program adds.

    Args:
        attempt: None: there is none, and nothing is added.
        most: how many bytes it may have.
    """

    def __init__(self, tx: Tx, attempt: tuple[int, int] | None, most: int) -> None:
        self._tx = tx
        self._attempt = attempt
        self._most = most
        self._ends: dict[str, str] = {}

    def add(self, told: ToldMessages, *, is_new: bool) -> None:
        """Add messages.

        Args:
            is_new: whether the request to which they reply has not been told before.
        """
        if self._attempt is None or not self._most or (told.place == "reply" and not is_new):
            return
        nodes: list[str] = []
        chain = self._ends.get(told.session)
        if told.place == "whole":
            chain = transcript_rules.root(*map(str, self._attempt), told.provider, told.session)
        elif told.place == "after":
            nodes = [f"{told.key}.{number}" for number in range(len(told.messages))]
        self._ends[told.session] = transcripts.append(self._tx, *self._attempt, chain, told.messages, self._most, nodes)


def _answered_for(tx: Reader, attempt: tuple[int, int] | None) -> frozenset[str]:
    """The providers that the gateway answers for in an attempt."""
    if attempt is None:
        return frozenset()
    row = tx.one(SQL.providers, task_id=attempt[0], attempt=attempt[1])
    return frozenset((row["model_providers"] or "").split()) if row else frozenset()


def _told(ctx: Ctx, signal: Signal, raw: bytes, form: str, coding: str) -> list[Told]:
    """What a request tells, without secrets. Blocks."""
    if form not in _FORMS:
        raise BadInput("BAD_MESSAGE", f"Send OTLP as {_FORMS[0]} or {_FORMS[1]}.")
    raw = _decompressed(raw, coding, ctx.settings.max_telemetry_bytes)
    try:
        document = json.loads(raw) if form == _FORMS[0] else _of_protobuf(signal, raw)
        told = received.read(signal, document)
    except (ValueError, RecursionError):
        raise BadInput("BAD_MESSAGE", f"This is no request of OTLP about {signal}.") from None
    if len(told) > MOST_TOLD:
        raise BadInput("TOO_LARGE", f"A request of OTLP may tell of {MOST_TOLD:,} requests to models and messages.")
    return [_masked(ctx, one) for one in told]


def _masked(ctx: Ctx, told: Told) -> Told:
    if isinstance(told, ToldMessages):
        messages = [ctx.secrets.masked(message) for message in told.messages]
        return replace(told, messages=messages)
    provider, model = (ctx.secrets.masked(name) for name in (told.provider, told.model))
    return replace(told, provider=provider, model=model)


def _decompressed(raw: bytes, coding: str, most: int) -> bytes:
    if coding in ("", "identity"):
        return raw
    if coding != "gzip":
        raise BadInput("BAD_MESSAGE", "Send OTLP uncompressed, or by gzip.")
    unzip = zlib.decompressobj(wbits=31)
    try:
        content = unzip.decompress(raw, most + 1)
    except zlib.error:
        raise BadInput("BAD_MESSAGE", "The body is not of gzip.") from None
    if len(content) > most:
        raise BadInput("TOO_LARGE", f"A request of OTLP may have at most {most:,} bytes: max_telemetry_bytes.")
    if not unzip.eof:
        raise BadInput("BAD_MESSAGE", "The body is cut: its gzip does not end.")
    return content


def _of_protobuf(signal: Signal, raw: bytes) -> Any:
    """A request of OTLP in protobuf, as its JSON has it.

    Raises:
        ValueError: it is none. BadInput: ``PROTOBUF_NOT_INSTALLED``.
    """
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError, Message
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError:
        raise BadInput(
            "PROTOBUF_NOT_INSTALLED",
            "This server reads OTLP as JSON only. Send that, or install 'workbench-agents[otel]' for the server.",
        ) from None
    kinds: dict[Signal, type[Message]] = {
        "logs": ExportLogsServiceRequest,
        "traces": ExportTraceServiceRequest,
        "metrics": ExportMetricsServiceRequest,
    }
    try:
        return MessageToDict(kinds[signal].FromString(raw))
    except DecodeError as error:
        raise ValueError(str(error)) from error


def _spending(told: ToldRequest, agent: str | None, attempt: tuple[int, int] | None, now: int) -> ModelSpending:
    end = told.at if told.at is not None and now - OLDEST <= told.at <= now else now
    task_id, number = attempt or (None, None)
    cost = told.cost_usd if told.cost_usd is not None and told.cost_usd <= DEAREST else None
    seconds = told.seconds if told.seconds is not None and told.seconds <= LONGEST_SECONDS else None
    return ModelSpending(
        at=end - int((seconds or 0.0) * SECOND),
        source="reported",
        provider=told.provider,
        model=told.model,
        usage=told.usage,
        agent=agent,
        task_id=task_id,
        attempt=number,
        seconds=seconds,
        first_byte_seconds=told.first_byte_seconds,
        cost_usd=cost,
        report=told.key,
    )
