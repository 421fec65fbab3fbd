"""OpenTelemetry spans of runs, nodes, model calls and searches, from LangChain's callbacks.

The attributes follow the conventions for generative AI:
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/. Spans contain names, numbers and ids only; texts are
added on request.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langgraph.errors import GraphBubbleUp
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

from sleuth.tools.langgraph_internals import NODE_TAG

Attributes = dict[str, str | int | float | Sequence[str]]

ROLES = {"human": "user", "ai": "assistant"}
"""Roles of messages, by LangChain's names; others are the same."""


class SpanHandler(BaseCallbackHandler):
    """Callback handler that makes a span of a run, of each node, of each model call and of each search.

    The parent of a run's span is the current span of the caller. Each run has a handler of its own.
    """

    run_inline = True  # in the caller's context, which has the current span

    def __init__(self, tracer: Tracer, *, texts: bool = False) -> None:
        """Set where spans go, and whether they contain texts."""
        self._tracer = tracer
        self._texts = texts
        self._open: dict[UUID, Span] = {}
        self._around: dict[UUID, UUID | None] = {}  # runs without a span of their own, such as routers
        self._threads: dict[UUID, str] = {}

    def context_of(self, run: UUID | None) -> Context | None:
        """Return the context in which the span of a run, or the innermost one around it, is the current span."""
        while run in self._around:
            run = self._around[run]
        span = self._open.get(run) if run else None
        return trace.set_span_in_context(span) if span else None

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **about: Any) -> None:  # noqa: ANN401
        """Open the span of a graph or of a node."""
        name, thread = str(about.get("name") or "graph"), str(_metadata(about).get("thread_id") or "")
        attributes: Attributes = {"gen_ai.conversation.id": thread} if thread else {}
        parent = about.get("parent_run_id")
        around = self._threads.get(parent) if parent else None
        self._threads[run_id] = thread
        tags: Sequence[str] = about.get("tags") or ()
        if any(tag.startswith(NODE_TAG) for tag in tags) and "langsmith:hidden" not in tags:  # a node
            self._begin(run_id, parent, name, attributes | {"sleuth.node": name})
        elif around != thread and not name.endswith("UpdateState"):  # a run or a sub-run, which has its own thread
            self._begin(run_id, parent, f"run {name}", attributes | {"sleuth.method": name})
        else:
            self._around[run_id] = parent

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **about: Any) -> None:  # noqa: ANN401 - as the base has it
        """End the span of a graph or of a node; the verdict's status is an attribute."""
        verdict = outputs.get("verdict") if isinstance(outputs, Mapping) else None
        self._end(run_id, {"sleuth.status": str(verdict["status"])} if verdict else {})

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:  # noqa: ANN401
        """End the span with the type of the error; an interrupt, which waits for a person, is none.

        The message of the error is left out, because it may quote a text.
        """
        span = self._open.get(run_id)
        if span and not isinstance(error, GraphBubbleUp):
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(StatusCode.ERROR)
        self._end(run_id, {})

    on_llm_error = on_retriever_error = on_chain_error

    def on_chat_model_start(self, serialized: Any, messages: list[Any], *, run_id: UUID, **about: Any) -> None:  # noqa: ANN401
        """Open the span of a model call."""
        attributes = _request_attributes(about.get("invocation_params") or {}, _metadata(about))
        if self._texts:
            attributes["gen_ai.input.messages"] = _as_json([_as_part(each) for each in messages[0]])
        name = f"chat {attributes.get('gen_ai.request.model', '')}".strip()
        self._begin(run_id, about.get("parent_run_id"), name, attributes, kind=SpanKind.CLIENT)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **about: Any) -> None:  # noqa: ANN401
        """End the span of a model call with its usage."""
        (generation, *_), *_ = response.generations
        message = generation.message if isinstance(generation, ChatGeneration) else None
        attributes = _reply_attributes(message) if isinstance(message, AIMessage) else {}
        if self._texts and message is not None:
            finish = list(attributes.get("gen_ai.response.finish_reasons", ()))  # type: ignore[arg-type]  # texts
            attributes["gen_ai.output.messages"] = _as_json([_as_part(message) | {"finish_reason": "".join(finish)}])
        self._end(run_id, attributes)

    def on_retriever_start(self, serialized: Any, query: str, *, run_id: UUID, **about: Any) -> None:  # noqa: ANN401
        """Open the span of a search."""
        attributes: Attributes = {"gen_ai.operation.name": "retrieval"}
        names = {"k": "gen_ai.retrieval.top_k", "mode": "sleuth.mode"}
        attributes |= {names[name]: value for name, value in _metadata(about).items() if name in names}
        if self._texts:
            attributes["gen_ai.retrieval.query.text"] = query
        self._begin(run_id, about.get("parent_run_id"), "retrieval", attributes)

    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **about: Any) -> None:  # noqa: ANN401
        """End the span of a search with the number of its passages."""
        attributes: Attributes = {"sleuth.passages": len(documents)}
        if self._texts:
            results = [
                {"id": each.id, "score": each.metadata.get("score"), "content": each.page_content} for each in documents
            ]
            attributes["gen_ai.retrieval.documents"] = _as_json(results)
        self._end(run_id, attributes)

    def _begin(
        self, run: UUID, parent: UUID | None, name: str, attributes: Attributes, *, kind: SpanKind = SpanKind.INTERNAL
    ) -> None:
        self._open[run] = self._tracer.start_span(name, self.context_of(parent), kind=kind, attributes=attributes)

    def _end(self, run: UUID, attributes: Attributes) -> None:
        self._around.pop(run, None)
        self._threads.pop(run, None)
        if span := self._open.pop(run, None):
            span.set_attributes(attributes)
            span.end()


def _metadata(about: Mapping[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = about.get("metadata") or {}
    return metadata


def _request_attributes(parameters: Mapping[str, Any], metadata: Mapping[str, Any]) -> Attributes:
    """Return the attributes of a request, from what sleuth's client or a LangChain chat model reports."""
    address = urlsplit(str(parameters.get("base_url") or ""))
    attributes = {
        "gen_ai.operation.name": "chat",
        # The protocol of the client: what serves an OpenAI-compatible address is unknown.
        "gen_ai.provider.name": metadata.get("ls_provider") or "openai",
        "gen_ai.conversation.id": metadata.get("thread_id"),
        "gen_ai.request.model": parameters.get("model") or parameters.get("model_name"),
        "gen_ai.request.seed": parameters.get("seed"),
        "gen_ai.request.temperature": parameters.get("temperature"),
        "gen_ai.request.max_tokens": parameters.get("max_tokens"),
        "gen_ai.output.type": "json" if parameters.get("response_format") else None,
        "server.address": address.hostname,
        "server.port": address.hostname and (address.port or {"https": 443}.get(address.scheme, 80)),
    }
    return {name: value for name, value in attributes.items() if isinstance(value, str | int | float)}


def _reply_attributes(message: AIMessage) -> Attributes:
    about, usage = message.response_metadata, message.usage_metadata
    attributes: Attributes = {}
    if usage:
        attributes["gen_ai.usage.input_tokens"] = usage["input_tokens"]
        attributes["gen_ai.usage.output_tokens"] = usage["output_tokens"]
        attributes["gen_ai.usage.cache_read.input_tokens"] = usage.get("input_token_details", {}).get("cache_read", 0)
    if finish := about.get("finish_reason") or about.get("stop_reason") or about.get("done_reason"):
        attributes["gen_ai.response.finish_reasons"] = [str(finish)]
    if model := about.get("model_name") or about.get("model"):
        attributes["gen_ai.response.model"] = str(model)
    return attributes


def _as_part(message: BaseMessage) -> dict[str, Any]:
    role = ROLES.get(message.type, message.type)
    return {"role": role, "parts": [{"type": "text", "content": message.text}]}


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
