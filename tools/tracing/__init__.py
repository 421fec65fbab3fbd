"""Tracing of runs by callbacks, LangSmith or OpenTelemetry: off unless a setting or the caller asks for it."""
