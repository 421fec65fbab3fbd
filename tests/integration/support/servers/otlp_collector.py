"""A collector of OpenTelemetry spans on loopback, which decodes what is posted to it."""

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from asgi_server import serving
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


@dataclass(frozen=True)
class Span:
    """A span as it arrived; ids are hexadecimal, and a root has an empty parent."""

    name: str
    trace: str
    id: str
    parent: str
    service: str
    attributes: dict[str, Any]


@dataclass
class Collector:
    """A collector with what was posted to it: the spans, and every request with its path and body."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    requests: list[tuple[str, bytes]] = field(default_factory=list)

    def receive(self, path: str, body: bytes) -> None:
        self.requests.append((path, body))
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = _values(resource.resource.attributes)["service.name"]
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                self.spans.append(Span(span.name, *ids, service, _values(span.attributes)))

    def named(self, name: str) -> Span:
        """The one span of this name."""
        (span,) = (span for span in self.spans if span.name == name)
        return span


def _values(attributes: Any) -> dict[str, Any]:
    pairs: list[KeyValue] = list(attributes)
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, str(kind))


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """A collector on a free port, in this event loop; its URL is as in OTEL_EXPORTER_OTLP_ENDPOINT."""
    collector = Collector()

    async def receive(request: Request) -> Response:
        body = await request.body()
        is_packed = request.headers.get("content-encoding") == "gzip"
        collector.receive(request.url.path, gzip.decompress(body) if is_packed else body)
        return Response(media_type="application/x-protobuf")

    async with serving(Starlette(routes=[Route("/{path:path}", receive, methods=["POST"])])) as url:
        collector.url = url
        yield collector
