"""Tracing of runs by callbacks, LangSmith or OpenTelemetry: off unless a setting or the caller asks for it."""

from sleuth.tools.tracing.callbacks import (
    PrivateTool,
    add_callbacks,
    check_callbacks,
    trace_headers,
    traced,
)
from sleuth.tools.tracing.exporter import check_tracing, endpoint, export_now, open_tracer

__all__ = [
    "PrivateTool",
    "add_callbacks",
    "check_callbacks",
    "check_tracing",
    "endpoint",
    "export_now",
    "open_tracer",
    "trace_headers",
    "traced",
]
