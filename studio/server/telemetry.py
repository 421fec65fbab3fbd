"""Metrics for Prometheus, spans of requests for OpenTelemetry, and structured log lines.

They contain names, numbers and ids only, never texts of questions, documents or replies.
"""

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from opentelemetry.context import get_current
from opentelemetry.trace import Span, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from sleuth.graphs.core import Step
from sleuth.tools.settings import Tracing
from sleuth.tools.tracing import open_tracer

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


@dataclass(kw_only=True)
class RunRecord:
    """Outcome and usage of one uninterrupted part of a run."""

    outcome: str = "interrupted"
    calls: int = 0
    tokens: int = 0


class Telemetry:
    """Metrics of one server, and spans of its requests; those of runs are made by their callbacks."""

    def __init__(self, tracing: Tracing = "off") -> None:
        self.registry = CollectorRegistry()
        self._tracer = open_tracer(tracing)
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

    @contextmanager
    def request(self, name: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """Open the span of a request; the caller renames it when the route is known.

        The span continues the trace of the header `traceparent`. If tracing is off, the trace is passed on unchanged.
        """
        caller = TraceContextTextMapPropagator().extract(headers, get_current())
        with self._tracer.start_as_current_span(
            name,
            caller,
            kind=SpanKind.SERVER,
            record_exception=False,  # messages of errors may quote texts
            set_status_on_exception=False,
        ) as span:
            yield span

    def count_request(self, verb: str, route: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        self._requests.labels(verb, route, str(status)).observe(seconds)

    @contextmanager
    def run(self, thread: str, method: str, owner: str) -> Iterator[RunRecord]:
        """Count a run while the block is open; the caller sets the outcome in the record."""
        record, began = RunRecord(), time.monotonic()
        self._active.inc()
        try:
            yield record
        finally:
            seconds = time.monotonic() - began
            self._active.dec()
            self._runs.labels(method, record.outcome).observe(seconds)
            self._calls.labels(method).inc(record.calls)
            self._tokens.labels(method).inc(record.tokens)
            numbers = {"calls": record.calls, "tokens": record.tokens, "seconds": round(seconds, 3)}
            summary = {"thread": thread, "method": method, "owner": owner, "outcome": record.outcome, **numbers}
            _log.info("run ended", extra={"about": summary})

    def step(self, step: Step, record: RunRecord) -> None:
        """Count a finished node; the calls of a sub-run are counted by the node that ran it."""
        calls = [] if step.part_of else [call for call in (step.update.get("calls") or {}).values() if call]
        record.calls += len(calls)
        record.tokens += sum(call["prompt_tokens"] + call["completion_tokens"] for call in calls)
