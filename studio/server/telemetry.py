"""Metrics for Prometheus, traces for OpenTelemetry, and structured log lines.

They contain names, numbers and ids only, never texts of questions, documents or replies.
"""

import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial

from opentelemetry import trace
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from sleuth.graphs.core import Step

_log = logging.getLogger(__name__)

SECONDS = (0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)


class JsonLines(logging.Formatter):
    """Formatter that writes one JSON object per record, with the fields of `extra={"about": {…}}`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z"
        line = {"at": at, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        line |= getattr(record, "about", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_json_logging() -> None:
    """Log JSON lines to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in ("sleuth", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.INFO)


def configure_tracing() -> None:
    """Export traces to the endpoint of the standard OTEL variables, if one is set."""
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    if not any(map(os.environ.get, endpoints)) or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = Resource.create({} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "sleuth"})
    provider = TracerProvider(resource=named)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


@dataclass(kw_only=True)
class RunRecord:
    """Outcome and usage of one uninterrupted part of a run."""

    outcome: str = "interrupted"
    calls: int = 0
    tokens: int = 0
    spans: dict[str, trace.Span] = field(default_factory=dict)


class Telemetry:
    """Metrics of one server, and spans of its requests and runs."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._tracer = trace.get_tracer("sleuth")
        histogram = partial(Histogram, registry=self.registry, buckets=SECONDS)
        labels = ("method", "route", "status")
        self._requests = histogram("sleuth_request_seconds", "Requests, to the end of their reply", labels)
        self._runs = histogram("sleuth_run_seconds", "Runs, from a start to an end", ("method", "outcome"))
        self._active = Gauge("sleuth_runs_active", "Runs under way", registry=self.registry)
        self._calls = Counter("sleuth_model_calls", "Model calls", ("method",), registry=self.registry)
        self._tokens = Counter("sleuth_model_tokens", "Prompt and reply tokens", ("method",), registry=self.registry)

    def metrics(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def request(self, name: str) -> AbstractContextManager[trace.Span]:
        """Open the span of a request; the caller renames it when the route is known."""
        return self._tracer.start_as_current_span(name, kind=trace.SpanKind.SERVER)

    def count_request(self, verb: str, route: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        self._requests.labels(verb, route, str(status)).observe(seconds)

    @contextmanager
    def run(self, thread: str, method: str, owner: str) -> Iterator[RunRecord]:
        """Count a run while the block is open; the caller sets the outcome in the record."""
        record, began = RunRecord(), time.monotonic()
        self._active.inc()
        about = {"sleuth.thread": thread, "sleuth.method": method, "sleuth.owner": owner}
        try:
            with self._tracer.start_as_current_span(f"run {method}", attributes=about) as span:
                yield record
                span.set_attribute("sleuth.outcome", record.outcome)
        finally:
            for open_span in record.spans.values():
                open_span.end()
            seconds = time.monotonic() - began
            self._active.dec()
            self._runs.labels(method, record.outcome).observe(seconds)
            self._calls.labels(method).inc(record.calls)
            self._tokens.labels(method).inc(record.tokens)
            numbers = {"calls": record.calls, "tokens": record.tokens, "seconds": round(seconds, 3)}
            summary = {"thread": thread, "method": method, "owner": owner, "outcome": record.outcome, **numbers}
            _log.info("run ended", extra={"about": summary})

    def step(self, step: Step, record: RunRecord) -> None:
        """Count a started or finished node; the calls of a sub-run are counted by the node that ran it."""
        if step.state == "started":
            about = {"sleuth.thread": step.thread, "sleuth.method": step.method}
            record.spans[step.task] = self._tracer.start_span(step.node, attributes=about)
            return
        if span := record.spans.pop(step.task, None):
            span.end()
        calls = [] if step.part_of else [call for call in (step.update.get("calls") or {}).values() if call]
        record.calls += len(calls)
        record.tokens += sum(call["prompt_tokens"] + call["completion_tokens"] for call in calls)
