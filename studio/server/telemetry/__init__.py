"""Metrics, spans, log lines and readiness of the server. They contain names, numbers and ids, never texts."""
