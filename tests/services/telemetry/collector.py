"""An OpenTelemetry collector that records what it is told, decoded with OpenTelemetry's own types."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
FULL = b"HTTP/1.1 503 Full\r\nretry-after: 7\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
ELSEWHERE = b"HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
WRONG_KEY = b"HTTP/1.1 401 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
NOT_THERE = b"HTTP/1.1 404 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
TOO_LARGE = b"HTTP/1.1 413 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
BAD = b"HTTP/1.1 400 Bad\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_PART = ExportTraceServiceResponse(
    partial_success=ExportTracePartialSuccess(rejected_spans=1, error_message="too many\n\x1b[2Jattributes")
).SerializeToString()
PARTLY = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_PART), _PART)


@dataclass(frozen=True)
class Told:
    """A span as it has arrived."""

    name: str
    trace: str
    id: str
    parent: str
    start: int
    end: int
    is_error: bool
    attributes: Mapping[str, Any]
    links: list[str]
    schema: str
    resource: Mapping[str, Any]


@dataclass
class Collector:
    """A collector; `answer` is what it says, None: nothing, ever; it takes `largest` bytes at a time."""

    answer: bytes | None = OK
    address: str = ""
    takes_metrics: bool = True
    largest: int = 1_000_000
    spans: list[Told] = field(default_factory=list)
    metrics: list[dict[str, list[Any]]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def raw(self) -> bytes:
        """Every byte that has arrived."""
        return b"".join(body for _, _, body in self.requests)

    def one(self, name: str) -> Told:
        """The only span with a name."""
        (span,) = [span for span in self.spans if span.name == name]
        return span

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        path = head[0].split()[1]
        self.requests.append((path, headers, body))
        if path == "/v1/metrics" and not self.takes_metrics:
            writer.write(NOT_THERE)
        elif len(body) > self.largest:
            writer.write(TOO_LARGE)
        elif self.answer is None:
            await reader.read()
        else:
            if self.answer in (OK, PARTLY):
                self._take(path, body)
            writer.write(self.answer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def _take(self, path: str, body: bytes) -> None:
        if path == "/v1/metrics":
            sent = ExportMetricsServiceRequest.FromString(body)
            scoped = [scope for resource in sent.resource_metrics for scope in resource.scope_metrics]
            self.metrics.append({metric.name: _points(metric) for scope in scoped for metric in scope.metrics})
            return
        assert path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                about = _attributes(resource.resource.attributes)
                self.spans += [_told(span, scope.schema_url, about) for span in scope.spans]


def _points(metric: Any) -> list[Any]:
    return list(getattr(metric, metric.WhichOneof("data")).data_points)


def _told(span: Any, schema: str, resource: Mapping[str, Any]) -> Told:
    return Told(
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        is_error=span.status.code == 2,
        attributes=_attributes(span.attributes),
        links=[link.span_id.hex() for link in span.links],
        schema=schema,
        resource=resource,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@asynccontextmanager
async def collecting(answer: bytes | None = OK) -> AsyncIterator[Collector]:
    """A collector that is there, as long as the block lasts."""
    collector = Collector(answer)
    handling: set[asyncio.Task[None]] = set()

    def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handling.add(asyncio.create_task(collector.serve(reader, writer)))

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    collector.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield collector
        for task in handling:
            task.cancel()
        await asyncio.gather(*handling, return_exceptions=True)
