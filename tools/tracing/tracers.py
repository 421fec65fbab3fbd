"""Tracers of the setting: LangSmith's, and OpenTelemetry's.

The OpenTelemetry tracer is that of the application, or one that exports to the endpoint of the OTEL variables.
"""

import os
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.langchain import LangChainTracer
from langsmith import Client, get_tracing_context
from opentelemetry import trace

from sleuth.tools.errors import UsageError, extra
from sleuth.tools.settings import Settings, Tracing, client_options
from sleuth.tools.tracing.spans import SpanHandler

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import TracerProvider


def tracers_for(tracing: Tracing, present: Sequence[BaseCallbackHandler], *, texts: bool) -> list[BaseCallbackHandler]:
    """Return the tracers of a setting for a run, without those of the same kind that are `present`."""
    if tracing == "otel":
        is_present = any(isinstance(handler, SpanHandler) for handler in present)
        return [] if is_present else [SpanHandler(open_tracer(), texts=texts)]
    if any(isinstance(handler, LangChainTracer) for handler in present):
        return []
    return [LangChainTracer(client=get_tracing_context()["client"] or _langsmith(texts))]


def destination(tracing: Tracing) -> str:
    """Return where runs are sent; raises as `open_tracer`."""
    if tracing == "langsmith":
        return "LangSmith"
    open_tracer()
    return urlsplit(endpoint()).netloc.rpartition("@")[2]


def without_message(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata or the error of a run, of an error only its type: its message may quote a text."""
    error = payload.get("error")
    return {**payload, "error": re.split(r"\W", error, maxsplit=1)[0]} if isinstance(error, str) else payload


WITHOUT_TEXTS: dict[str, Any] = {"hide_inputs": True, "hide_outputs": True, "anonymizer": without_message}
"""Options of a LangSmith client that sends names, times, ids and numbers only, also of the runs within a node."""


@cache
def _langsmith(texts: bool) -> Client:
    url = os.environ.get("LANGSMITH_ENDPOINT") or "https://api.smith.langchain.com"
    return Client(session=direct_session(url), **({} if texts else WITHOUT_TEXTS))


NAME = "sleuth"
"""Name of the instrumentation scope, and of the service unless the OTEL variables name it."""

PROTOCOL = "http/protobuf"


def open_tracer() -> trace.Tracer:
    """Return the tracer of OpenTelemetry.

    An application that has set a global tracer provider keeps it: the spans go there. Otherwise the process exports
    them by OTLP over HTTP, to the endpoint of the standard OTEL variables.
    """
    provider = trace.get_tracer_provider()
    return (_exporting() if isinstance(provider, trace.ProxyTracerProvider) else provider).get_tracer(NAME)


def export_now() -> None:
    """Export the spans that wait for it; blocks. For processes that a signal ends: others do it when they exit."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        _exporting().force_flush()


def endpoint() -> str:
    """Return the address to which spans are sent, as OpenTelemetry's exporter reads it from the environment."""
    base = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or "http://localhost:4318"
    return os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or f"{base.rstrip('/')}/v1/traces"


def direct_session(url: str) -> "requests.Session":
    """Return a session that ignores the proxies of the environment; SLEUTH_PROXY applies as elsewhere."""
    import requests

    session, proxy = requests.Session(), client_options(url, Settings().proxy)["proxy"]
    session.trust_env = False
    session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True
    session.proxies = {"all": proxy} if proxy else {}
    return session


@cache
def _exporting() -> "TracerProvider":
    """Return the provider of this process; it exports in the background, and when the process ends."""
    with extra("otel", "SLEUTH_TRACING=otel"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if os.environ.get(name, PROTOCOL) not in ("", PROTOCOL):
            raise UsageError(
                f"{name} is {os.environ[name]!r}, but sleuth exports spans by {PROTOCOL} only: unset it, "
                "and give the endpoint of the collector's HTTP receiver (port 4318 by default)."
            )
    is_named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    provider = TracerProvider(resource=Resource.create({} if is_named else {"service.name": NAME}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(session=direct_session(endpoint()))))
    return provider
