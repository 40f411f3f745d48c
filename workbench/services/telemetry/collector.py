"""The person's OpenTelemetry collector: where it is, and how it is sent OTLP by HTTP with protobuf.

Redirects are not followed, and only the beginning of an answer is read. The libraries of OpenTelemetry are imported
when something is sent: they come with the extra `otel`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

from workbench.definition_files.secret_sources import resolve
from workbench.errors import Unavailable
from workbench.model import __version__
from workbench.ops import Ctx
from workbench.present.inert import inert_line
from workbench.rules.definitions.secrets.references import parse
from workbench.rules.telemetry.spans import SCHEMA, Attribute, Span, SpanId
from workbench.rules.telemetry.totals import BOUNDS, COST, SECONDS, TOKENS, Series
from workbench.state.telemetry_settings import require_collector

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext

ENDPOINT, HEADERS = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"
LARGEST_ANSWER = 65_536
NANOSECONDS = 1_000
"""In a microsecond."""
RETRIED = (408, 429)
MISSET = (401, 403, 404, 405)
"""Statuses that the person mends, after which the same is sent again."""
NOT_SERVED = (404, 405, 415, 501)
"""Statuses of collectors that take traces only, when they are told of metrics."""
TOO_LARGE = 413
SERVER_ERROR = 500
_METRICS = {
    TOKENS: ("Number of input and output tokens used.", "{token}"),
    SECONDS: ("GenAI operation duration.", "s"),
    COST: ("What requests to models cost, as far as their prices are known.", "{USD}"),
}

Signal = Literal["traces", "metrics"]


class RetryLaterError(Exception):
    """The collector does not take what is sent now.

    Args:
        error: why.
        seconds: when it wants to be asked again, if it says so.
    """

    def __init__(self, error: Unavailable, seconds: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.seconds = seconds


class TooLargeError(Exception):
    """The collector takes fewer spans in one request."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """A number as it is now, such as of the tasks in a state."""

    name: str
    unit: str
    value: int
    attributes: Mapping[str, Attribute]


def endpoint(ctx: Ctx) -> str | None:
    """The address of the collector, without a slash at its end; None: there is none.

    Raises:
        Unavailable: ``TELEMETRY_MISSET``: the variable has no usable address.
    """
    address = ctx.settings.telemetry_endpoint or os.environ.get(ENDPOINT, "").strip()
    if not address:
        return None
    try:
        require_collector(address)
    except ValueError as error:
        raise Unavailable("TELEMETRY_MISSET", f"{ENDPOINT}: {error}. Correct or unset the variable.") from None
    return address.rstrip("/")


def require_installed() -> None:
    """Refuse to send without the libraries.

    Raises:
        Unavailable: ``TELEMETRY_NOT_INSTALLED``.
    """
    for module in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.common"):
        try:
            there = find_spec(module) is not None
        except ModuleNotFoundError:
            there = False
        if not there:
            raise Unavailable(
                "TELEMETRY_NOT_INSTALLED",
                "A collector is set, and what it needs is not installed: `pip install 'workbench-agents[otel]'`.",
            )


async def send(ctx: Ctx, address: str, signal: Signal, content: bytes) -> str | None:
    """Send one request to the collector.

    Returns:
        Why it refuses the content, or some of it, for good; None: it has taken all, or does not take metrics at all.

    Raises:
        RetryLaterError: ``TELEMETRY_UNREACHABLE``, ``TELEMETRY_MISSET``. TooLargeError: of traces only.
        Unavailable: ``SECRET_UNRESOLVED``.
    """
    import httpx2

    from workbench.client.http import TRUST_IT, distrust

    headers = await asyncio.to_thread(_headers, ctx)
    ctx.secrets.add(headers.values())
    headers |= {"content-type": "application/x-protobuf", "user-agent": f"workbench/{__version__}"}
    headers["accept-encoding"] = "identity"  # what is unpacked would have no bound
    seconds = ctx.settings.telemetry_answer_seconds
    body = bytearray()
    try:
        async with (
            httpx2.AsyncClient(follow_redirects=False, timeout=seconds) as client,
            asyncio.timeout(seconds),
            client.stream("POST", f"{address}/v1/{signal}", content=content, headers=headers) as answer,
        ):
            async for chunk in answer.aiter_raw():
                body += chunk
                if len(body) > LARGEST_ANSWER:
                    break
            status, after = answer.status_code, answer.headers.get("retry-after", "")
    except TimeoutError:
        raise _later(f"did not answer within {seconds:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:  # its text may have the address
        if why := distrust(error):
            text = f"The collector's certificate is not trusted: {why}. {TRUST_IT}"
            raise RetryLaterError(Unavailable("TELEMETRY_MISSET", text)) from None
        raise _later(f"could not be reached ({type(error).__name__})") from None
    if httpx2.codes.is_success(status):
        return await asyncio.to_thread(_refused_part, signal, bytes(body))
    if signal == "metrics" and status in NOT_SERVED:
        return None
    if signal == "traces" and status == TOO_LARGE:
        raise TooLargeError
    if status >= SERVER_ERROR or status in RETRIED:
        raise _later(f"answered {status}", float(after) if after.isdecimal() else None)
    if httpx2.codes.is_redirect(status) or status in MISSET:
        redirects = ", a redirect, which is not followed" if httpx2.codes.is_redirect(status) else ""
        text = f"The collector answered {status}{redirects}. Correct telemetry_endpoint or telemetry_header."
        raise RetryLaterError(Unavailable("TELEMETRY_MISSET", text))
    return f"it answered {status}"


def _later(what: str, seconds: float | None = None) -> RetryLaterError:
    text = f"The collector {what}. It is told later; look at it, or correct telemetry_endpoint."
    return RetryLaterError(Unavailable("TELEMETRY_UNREACHABLE", text), seconds)


def _headers(ctx: Ctx) -> dict[str, str]:
    """The headers with the person's secrets. Blocks.

    Raises:
        Unavailable: ``SECRET_UNRESOLVED``.
    """
    name, _, value = ctx.settings.telemetry_header.partition(":")
    if (reference := parse(value.strip())) is not None:
        return {name: reference.scheme + resolve(reference, ctx.settings.project)}
    pairs = (pair.partition("=") for pair in os.environ.get(HEADERS, "").split(","))
    return {name.strip().lower(): unquote(value.strip()) for name, sign, value in pairs if sign and name.strip()}


def _refused_part(signal: Signal, body: bytes) -> str | None:
    """What of a request the collector says it has refused."""
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        if signal == "traces":
            spans = ExportTraceServiceResponse.FromString(body).partial_success
            refused, why = spans.rejected_spans, spans.error_message
        else:
            points = ExportMetricsServiceResponse.FromString(body).partial_success
            refused, why = points.rejected_data_points, points.error_message
    except DecodeError:  # another kind of answer, with a status of success
        return None
    return f"it refused {refused} of them: {inert_line(why[:200])}" if refused else None


def encode_spans(spans: Sequence[Span], resource: Mapping[str, Attribute]) -> bytes:
    """The request that tells of spans. Blocks."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans as encode
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Link, SpanKind, Status, StatusCode

    about, scope = _resource(resource), _scope()
    content: bytes = encode(
        [
            ReadableSpan(
                name=span.name,
                context=_context(span.id),
                parent=_context(span.parent) if span.parent else None,
                resource=about,
                attributes=dict(span.attributes) | ({"error.type": span.error} if span.error else {}),
                links=[Link(_context(span.link))] if span.link else [],
                kind=SpanKind.CLIENT if span.is_client else SpanKind.INTERNAL,
                status=Status(StatusCode.ERROR if span.error else StatusCode.UNSET),
                start_time=span.start * NANOSECONDS,
                end_time=max(span.start, span.end) * NANOSECONDS,
                instrumentation_scope=scope,
            )
            for span in spans
        ]
    ).SerializeToString()
    return content


def encode_metrics(
    series: Sequence[Series], gauges: Sequence[Gauge], since: int, now: int, resource: Mapping[str, Attribute]
) -> bytes:
    """The request that tells of sums since a time, and of numbers as they are. Times are in microseconds. Blocks."""
    from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics as encode
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics

    metrics = [*_sums(series, since * NANOSECONDS, now * NANOSECONDS), *_gauges(gauges, now * NANOSECONDS)]
    scoped = ScopeMetrics(_scope(), metrics, SCHEMA)
    data = MetricsData([ResourceMetrics(_resource(resource), [scoped], SCHEMA)])
    content: bytes = encode(data).SerializeToString()
    return content


def _sums(series: Sequence[Series], since: int, now: int) -> list[Metric]:
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Histogram,
        HistogramDataPoint,
        Metric,
        NumberDataPoint,
        Sum,
    )

    metrics, cumulative = [], AggregationTemporality.CUMULATIVE
    for name, (description, unit) in _METRICS.items():
        ours, bounds = [one for one in series if one.metric == name], BOUNDS[name]
        if not ours:
            continue
        data: Sum | Histogram
        if bounds:
            points = [
                HistogramDataPoint(
                    one.attributes, since, now, one.count, one.sum, one.buckets, bounds, one.least, one.most
                )
                for one in ours
            ]
            data = Histogram(points, cumulative)
        else:
            data = Sum([NumberDataPoint(one.attributes, since, now, one.sum) for one in ours], cumulative, True)
        metrics.append(Metric(name, description, unit, data))
    return metrics


def _gauges(gauges: Sequence[Gauge], now: int) -> list[Metric]:
    from opentelemetry.sdk.metrics.export import Gauge as GaugeData
    from opentelemetry.sdk.metrics.export import Metric, NumberDataPoint

    units = {gauge.name: gauge.unit for gauge in gauges}
    return [
        Metric(
            name,
            None,
            unit,
            GaugeData([NumberDataPoint(one.attributes, now, now, one.value) for one in gauges if one.name == name]),
        )
        for name, unit in units.items()
    ]


def _context(place: SpanId) -> SpanContext:
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(place.trace, place.span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _resource(about: Mapping[str, Attribute]) -> Resource:
    """The resource: what OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME say comes first."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    own = Resource({"service.name": "workbench", "service.version": __version__, **about}, SCHEMA)
    return own.merge(OTELResourceDetector().detect())


def _scope() -> InstrumentationScope:
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    return InstrumentationScope("workbench", __version__, SCHEMA)
