"""Metrics for Prometheus, and spans of requests for OpenTelemetry."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from opentelemetry.context import get_current
from opentelemetry.trace import NoOpTracer, Span, SpanKind, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from sleuth.graphs.core.events import Step
from sleuth.graphs.core.tracing import backend
from sleuth.tools.settings import Tracing

_log = logging.getLogger(__name__)

SECONDS = (0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)


@dataclass(kw_only=True)
class RunRecord:
    """Outcome and usage of one uninterrupted part of a run."""

    outcome: str = "failed"
    error: str = ""
    calls: int = 0
    tokens: int = 0


class Telemetry:
    """Metrics of one server, and spans of its requests; callbacks create the spans of runs."""

    def __init__(self, tracing: Tracing = "off") -> None:
        self.registry, self._by_owner = CollectorRegistry(), CollectorRegistry()
        self._tracer: Tracer = backend(tracing).open_tracer() if tracing == "otel" else NoOpTracer()
        histogram = partial(Histogram, registry=self.registry, buckets=SECONDS)
        counter = partial(Counter, registry=self.registry)
        labels = ("method", "route", "status")
        self._requests = histogram("sleuth_request_seconds", "Requests, to the end of their reply", labels)
        self._runs = histogram("sleuth_run_seconds", "Runs, from a start to an end", ("method", "outcome"))
        self._active = Gauge("sleuth_runs_active", "Runs under way", registry=self.registry)
        self.answers = counter("sleuth_answers", "Answers", ("method", "status"))
        self._errors = counter("sleuth_run_errors", "Errors that ended a run", ("method", "error"))
        self._calls = counter("sleuth_model_calls", "Model calls", ("method",))
        self._tokens = counter("sleuth_model_tokens", "Prompt and reply tokens", ("method",))
        self._call_seconds = histogram("sleuth_model_call_seconds", "Model calls, retries included", ("role", "model"))
        self._repairs = counter("sleuth_model_repairs", "Replies that could not be parsed", ("role",))
        self.refused_keys = counter("sleuth_refused_keys", "Requests without a valid key", ("reason",))
        self._ingests = histogram("sleuth_ingest_seconds", "Uploads, from their arrival to their end", ("status",))
        self._files = counter("sleuth_ingested_files", "Files of uploads", ("outcome",))
        self.ingests_waiting = Gauge("sleuth_ingests_waiting", "Uploads that have not ended", registry=self.registry)
        counter = partial(Counter, registry=self._by_owner)
        self._owner_requests = counter("sleuth_owner_requests", "Requests", ("owner",))
        self._owner_runs = counter("sleuth_owner_runs", "Runs", ("owner", "method", "outcome"))
        self._owner_tokens = counter("sleuth_owner_tokens", "Prompt and reply tokens", ("owner",))

    def metrics(self, *, with_owners: bool) -> bytes:
        """Return the metrics in Prometheus' text format."""
        return generate_latest(self.registry) + (generate_latest(self._by_owner) if with_owners else b"")

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

    def count_request(self, verb: str, route: str, status: int, seconds: float, owner: str | None) -> None:
        """Count a finished request."""
        self._requests.labels(verb, route, str(status)).observe(seconds)
        if owner is not None:
            self._owner_requests.labels(owner).inc()

    def count_ingest(self, status: str, seconds: float, *, read: int, failed: int) -> None:
        """Count an upload that has ended, and its files."""
        self._ingests.labels(status).observe(seconds)
        self._files.labels("read").inc(max(0, read - failed))
        self._files.labels("failed").inc(failed)

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
            self._owner_runs.labels(owner, method, record.outcome).inc()
            self._owner_tokens.labels(owner).inc(record.tokens)
            if record.outcome == "failed":
                self._errors.labels(method, record.error or "unexpected").inc()
            numbers = {"calls": record.calls, "tokens": record.tokens, "seconds": round(seconds, 3)}
            summary = {"thread": thread, "method": method, "owner": owner, "outcome": record.outcome, **numbers}
            _log.info("run ended", extra={"about": summary})

    def step(self, step: Step, record: RunRecord) -> None:
        """Count a finished node; the calls of a sub-run are counted by the node that ran it."""
        calls = [] if step.part_of else [call for call in (step.update.get("calls") or {}).values() if call]
        for call in calls:
            self._call_seconds.labels(call["role"], call["model"]).observe(call["seconds"])
            self._repairs.labels(call["role"]).inc(bool(call["repair"]))
        record.calls += len(calls)
        record.tokens += sum(call["prompt_tokens"] + call["completion_tokens"] for call in calls)
