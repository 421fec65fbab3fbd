"""A collector of OpenTelemetry spans on loopback, which decodes what is posted to it."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue


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

    url: str
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


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a free port, in a thread of its own; its URL is as in OTEL_EXPORTER_OTLP_ENDPOINT."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            is_packed = self.headers.get("Content-Encoding") == "gzip"
            collector.receive(self.path, gzip.decompress(body) if is_packed else body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *values: Any) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
