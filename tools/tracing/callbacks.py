"""Callbacks of runs: those of the caller, and the tracer that the setting asks for.

langchain-core adds a LangSmith tracer to every run when one of its environment variables is set, unless the run's
callbacks contain a tracer already. So all graphs of sleuth have an `Untraced` tracer, which sends nothing, and `traced`
adds another one where a caller or the setting asks for it. Nothing global changes, so an application that embeds sleuth
keeps its own tracing.

The OpenTelemetry tracer is that of the application, or one that exports to the endpoint of the OTEL variables.
"""

import logging
import os
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.callbacks.base import Callbacks
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs, var_child_runnable_config
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.context import tracing_v2_callback_var
from langchain_core.tracers.langchain import LangChainTracer
from langsmith import Client, get_tracing_context

from sleuth.tools.errors import UsageError, extra
from sleuth.tools.settings import Settings, Tracing, client_options, tracing_variables

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

    from sleuth.tools.tracing.spans import SpanHandler

_log = logging.getLogger(__name__)


class _Empty(dict[Any, Any]):
    """A map that keeps nothing: langchain-core adds runs of the caller to the maps of each tracer."""

    def __setitem__(self, key: object, value: object) -> None:
        """Ignore the value."""

    def setdefault(self, key: object, default: object = None) -> object:
        """Return the default."""
        return default


class Untraced(LangChainTracer):
    """Tracer that receives no event and sends nothing. It occupies the place of the one from the environment."""

    ignore_llm = ignore_chat_model = ignore_chain = ignore_agent = ignore_retriever = True
    ignore_retry = ignore_custom_event = True

    def __init__(self) -> None:
        """Skip the parent's constructor, which creates a LangSmith client."""
        BaseTracer.__init__(self, run_map=_Empty(), order_map=_Empty(), _external_run_ids=_Empty())

    def copy_with_metadata_defaults(
        self, *, metadata: Mapping[str, str] | None = None, tags: list[str] | None = None
    ) -> "Untraced":
        """Return itself: there is nothing to add metadata to."""
        return self


def traced(config: RunnableConfig | None, tracing: Tracing, *, texts: bool = False) -> RunnableConfig:
    """Return the config of a run with the tracers that apply to it.

    Args:
        config: the config that the run is called with.
        tracing: the setting. LangSmith's applies where the caller has not chosen.
        texts: whether traces contain questions, passages, prompts and replies.

    Raises:
        MissingExtra: the setting is `otel`, and its extra is not installed.
    """
    callbacks = [each.get("callbacks") for each in (config, var_child_runnable_config.get()) if each]
    is_decided = any(isinstance(each, LangChainTracer) for callback in callbacks for each in _handlers(callback))
    tracers: list[BaseCallbackHandler] = [] if is_decided else [_tracer(tracing, texts)]
    if tracing == "otel" and not any(map(_span_handlers, callbacks)):
        tracer = open_tracer("otel")
        from sleuth.tools.tracing.spans import SpanHandler

        tracers.append(SpanHandler(tracer, texts=texts))
    if not tracers:
        return config or {}
    callback = next((each for each in callbacks if each), None)
    return {**(config or {}), "callbacks": merge_configs({"callbacks": callback}, {"callbacks": tracers})["callbacks"]}


def check_callbacks(callbacks: Callbacks) -> Callbacks:
    """Return the callbacks of a caller; raise UsageError if they are no list of handlers."""
    is_list = isinstance(callbacks, list) and all(isinstance(each, BaseCallbackHandler) for each in callbacks)
    if callbacks is not None and not is_list and not isinstance(callbacks, BaseCallbackManager):
        raise UsageError(f"`callbacks` takes a list of LangChain's callback handlers, not {callbacks!r:.200}.")
    return callbacks


def add_callbacks(config: RunnableConfig, callbacks: Callbacks) -> RunnableConfig:
    """Return the config with callbacks in addition to those of the run around this one, if there is one."""
    if not callbacks:
        return config
    outer = (var_child_runnable_config.get() or {}).get("callbacks")
    return merge_configs(config, {"callbacks": outer}, {"callbacks": callbacks})


def trace_headers(callbacks: BaseCallbackManager | None, run: UUID | None = None) -> dict[str, str]:
    """Return the headers that continue the trace in another server (W3C Trace Context); none outside of a trace.

    Args:
        callbacks: those of the run.
        run: the run that sends the request; its span is the parent of the server's. Without a span of its own, the
            parent is the current span of the application or, in `sleuth serve`, that of the request.
    """
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    contexts = [handler.context_of(run) for handler in _span_handlers(callbacks)]
    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers, contexts[0] if contexts else None)
    return headers


def _tracer(tracing: Tracing, texts: bool) -> LangChainTracer:
    """Return the tracer that the caller's code has chosen, otherwise that of the setting."""
    context, chosen = get_tracing_context(), tracing_v2_callback_var.get()
    if chosen is not None:
        return chosen
    if context["parent"] is not None or context["enabled"]:
        return LangChainTracer(client=context["parent"].client if context["parent"] else context["client"])
    if tracing == "langsmith" and context["enabled"] is None:
        return LangChainTracer(client=context["client"] or _langsmith(texts))
    if context["enabled"] is None:
        _warn_of_ignored_variables()
    return Untraced()


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


def _span_handlers(callbacks: Callbacks) -> "list[SpanHandler]":
    from sleuth.tools.tracing.spans import SpanHandler

    return [each for each in _handlers(callbacks) if isinstance(each, SpanHandler)]


def _handlers(callbacks: Callbacks) -> list[object]:
    if isinstance(callbacks, BaseCallbackManager):
        return [*callbacks.handlers, *callbacks.inheritable_handlers]
    return list(callbacks or [])


@cache
def _warn_of_ignored_variables() -> None:
    """Log once in a process which variables would start tracing by themselves."""
    if names := tracing_variables(os.environ):
        verb = "is" if len(names) == 1 else "are"
        _log.warning(
            "%s %s ignored: sleuth sends nothing to LangSmith unless SLEUTH_TRACING=langsmith is set.",
            ", ".join(names),
            verb,
        )


NAME = "sleuth"
"""Name of the instrumentation scope, and of the service unless the OTEL variables name it."""

PROTOCOL = "http/protobuf"


def open_tracer(tracing: Tracing) -> "Tracer":
    """Return the tracer for a setting; it makes no spans unless that is `otel`.

    An application that has set a global tracer provider keeps it: the spans go there. Otherwise the process exports
    them by OTLP over HTTP, to the endpoint of the standard OTEL variables. Blocks while it imports.

    Raises:
        MissingExtra: the extra `otel` is not installed.
        UsageError: the OTEL variables ask for another protocol.
    """
    from opentelemetry import trace

    if tracing != "otel":
        return trace.NoOpTracer()
    provider = trace.get_tracer_provider()
    return (_exporting() if isinstance(provider, trace.ProxyTracerProvider) else provider).get_tracer(NAME)


def export_now(tracing: Tracing) -> None:
    """Export the spans that wait for it; blocks. For processes that a signal ends: others do it when they exit."""
    from opentelemetry import trace

    if tracing == "otel" and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
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
