"""Metrics, spans, log lines and readiness of the server. They contain names, numbers and ids, never texts."""

from sleuth.studio.server.telemetry.logs import JsonLines, LogFormat, TextLines, configure_logging, log_fields
from sleuth.studio.server.telemetry.metrics import RunRecord, Telemetry
from sleuth.studio.server.telemetry.readiness import ReadinessProbe, ReadinessReport

__all__ = [
    "JsonLines",
    "LogFormat",
    "ReadinessProbe",
    "ReadinessReport",
    "RunRecord",
    "Telemetry",
    "TextLines",
    "configure_logging",
    "log_fields",
]
