"""OpenTelemetry spans of runs, made from callbacks and kept in memory."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, SpanKind, StatusCode
from scenes import Shelf, passage
from scripted_model import reply
from typing_extensions import TypedDict

from sleuth.agents.llm.tracing import TracedCall
from sleuth.agents.model import Message, Reply, Request, Usage
from sleuth.graphs.baselines.plain_rag import Settings
from sleuth.graphs.core.context import Context
from sleuth.graphs.registry import runnable
from sleuth.tools.errors import ModelError, UsageError
from sleuth.tools.storage.archive import MemoryArchive
from sleuth.tools.tracing import tracers
from sleuth.tools.tracing.spans import SpanHandler
from sleuth.tools.tracing.tracers import endpoint, open_tracer

QUESTION = "How high is the tower?"
TOWER = "The tower is in Varn. It is 30 m high."
READING = {"answerable": True, "answer": "30 m", "citations": [{"source": 1, "quote": "It is 30 m high."}]}

USAGE = Usage(prompt_tokens=100, cached_tokens=40, completion_tokens=10)


class Server:
    """A model that reports its calls as the client of a server does, and keeps the headers that it would send."""

    context_window = 8192

    def __init__(self, failure: Exception | None = None) -> None:
        self.headers: list[Mapping[str, str]] = []
        self._failure = failure

    async def call(self, request: Request) -> Reply:
        body: dict[str, Any] = {
            "model": "tiny",
            "seed": 7,
            "max_tokens": 99,
            "temperature": 0.0,
            "response_format": {"type": "x"},
        }
        body["messages"] = request.messages
        async with TracedCall(body, url="http://models.example:8000/v1") as call:
            call.reply = await self.send(call.headers)
            return call.reply

    async def send(self, headers: Mapping[str, str]) -> Reply:
        self.headers.append(headers)
        if self._failure:
            raise self._failure
        return {**reply(json.dumps(READING)), "model": "tiny-1", "usage": USAGE}

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        return 100


class Spans:
    """An exporter in memory, and a handler that exports to it."""

    def __init__(self, *, texts: bool = False) -> None:
        self._kept = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.tracer = provider.get_tracer("test")
        self.handler = SpanHandler(self.tracer, texts=texts)

    def by_name(self) -> dict[str, ReadableSpan]:
        found = self._kept.get_finished_spans()
        assert len({span.name for span in found}) == len(found), [span.name for span in found]
        return {span.name: span for span in found}


def about(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def parent(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def own(span: ReadableSpan) -> int:
    return span.get_span_context().span_id  # type: ignore[union-attr]


def traceparent(context: SpanContext, span: int) -> dict[str, str]:
    return {"traceparent": f"00-{context.trace_id:032x}-{span:016x}-{context.trace_flags:02x}"}


async def run(spans: Spans | None, server: Server) -> None:
    context = Context(
        model=server,
        retriever=Shelf([passage("tower", TOWER)]),
        archive=MemoryArchive(),
        settings=Settings(check_evidence=False),
    )
    compiled = runnable("plain-rag").graph().compile(checkpointer=InMemorySaver(), name="plain-rag")
    config: Any = {"configurable": {"thread_id": "t1"}} | ({"callbacks": [spans.handler]} if spans else {})
    await compiled.ainvoke({"question": QUESTION}, config, context=context)


async def test_run_has_spans_with_the_attributes_of_the_convention() -> None:
    await run(spans := Spans(), Server())
    found = spans.by_name()
    assert found.keys() == {"run plain-rag", "retrieve", "retrieval", "answer", "chat tiny"}
    whole = found["run plain-rag"]
    parents = {name: parent(span) for name, span in found.items()}
    assert parents == {
        "run plain-rag": None,
        "retrieve": own(whole),
        "answer": own(whole),
        "retrieval": own(found["retrieve"]),
        "chat tiny": own(found["answer"]),
    }
    assert about(whole) == {
        "gen_ai.conversation.id": "t1",
        "sleuth.method": "plain-rag",
        "sleuth.status": "answered",
    }
    call = found["chat tiny"]
    assert call.kind is SpanKind.CLIENT
    assert about(call) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.conversation.id": "t1",
        "gen_ai.request.model": "tiny",
        "gen_ai.request.seed": 7,
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.max_tokens": 99,
        "gen_ai.output.type": "json",
        "server.address": "models.example",
        "server.port": 8000,
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.model": "tiny-1",
    }
    assert about(found["retrieval"]) == {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.top_k": Settings().top_k,
        "sleuth.mode": Settings().mode,
        "sleuth.passages": 1,
    }


async def test_spans_contain_texts_only_on_request() -> None:
    await run(without := Spans(), Server())
    written = "".join(span.to_json() for span in without.by_name().values())
    assert "tower" not in written and "30 m" not in written
    await run(with_texts := Spans(texts=True), Server())
    call, search = (about(with_texts.by_name()[name]) for name in ("chat tiny", "retrieval"))
    messages = json.loads(call["gen_ai.input.messages"])
    assert [each["role"] for each in messages] == ["system", "user"]
    assert QUESTION in messages[-1]["parts"][0]["content"] and TOWER in messages[-1]["parts"][0]["content"]
    (output,) = json.loads(call["gen_ai.output.messages"])
    assert (output["role"], output["finish_reason"]) == ("assistant", "stop")
    assert json.loads(output["parts"][0]["content"]) == READING
    assert search["gen_ai.retrieval.query.text"] == QUESTION
    (document,) = json.loads(search["gen_ai.retrieval.documents"])
    assert document == {"id": "tower", "score": 1.0, "content": TOWER}


async def test_failure_has_a_type_and_no_message() -> None:
    with pytest.raises(ModelError):
        await run(spans := Spans(), Server(ModelError("secret words")))
    found = spans.by_name()
    for name in ("run plain-rag", "answer", "chat tiny"):
        assert found[name].status.status_code is StatusCode.ERROR
        assert about(found[name])["error.type"] == "ModelError"
    assert found["retrieve"].status.status_code is StatusCode.UNSET
    assert "secret" not in "".join(span.to_json() for span in found.values())


async def test_trace_of_the_caller_continues_in_the_model_server() -> None:
    spans, traced, untraced, alone = Spans(), Server(), Server(), Server()
    with spans.tracer.start_as_current_span("caller") as caller:
        await run(spans, traced)
        await run(None, untraced)
    await run(None, alone)
    found, context = spans.by_name(), caller.get_span_context()
    assert found.keys() == {"caller", "run plain-rag", "retrieve", "retrieval", "answer", "chat tiny"}
    assert parent(found["run plain-rag"]) == context.span_id
    assert traced.headers == [traceparent(context, own(found["chat tiny"]))]
    assert untraced.headers == [traceparent(context, context.span_id)]
    assert alone.headers == [{}]


class Hanging(Server):
    """A model server that never replies."""

    async def send(self, headers: Mapping[str, str]) -> Reply:
        self.headers.append(headers)
        return await asyncio.Future[Reply]()


async def test_cancelled_run_ends_its_spans() -> None:
    spans, server = Spans(), Hanging()
    running = asyncio.create_task(run(spans, server))
    while not server.headers:  # noqa: ASYNC110 - the server has no event
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    found = spans.by_name()
    assert found.keys() == {"run plain-rag", "retrieve", "retrieval", "answer", "chat tiny"}
    assert about(found["chat tiny"])["error.type"] == about(found["run plain-rag"])["error.type"] == "CancelledError"


class Asking(TypedDict):
    text: str


async def test_interrupt_is_no_error() -> None:
    async def ask_back(state: Asking) -> Asking:
        return Asking(text=interrupt("Which one?"))

    spans = Spans()
    builder = StateGraph(Asking).add_node(ask_back).add_edge(START, "ask_back")
    compiled = builder.compile(checkpointer=InMemorySaver(), name="asking")
    place: Any = {"configurable": {"thread_id": "1"}, "callbacks": [spans.handler]}
    await compiled.ainvoke({"text": ""}, place)
    found = spans.by_name()
    assert found.keys() == {"run asking", "ask_back"}
    assert all(span.status.status_code is StatusCode.UNSET for span in found.values())


def test_other_protocols_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    tracers._exporting.cache_clear()  # as in a fresh process
    with pytest.raises(UsageError, match="OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'"):
        open_tracer()


@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({}, "http://localhost:4318/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1/"}, "http://c:1/v1/traces"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://d/x"},
            "http://d/x",
        ),
    ],
)
def test_endpoint_is_that_of_the_exporter(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], address: str
) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert endpoint() == OTLPSpanExporter()._endpoint == address
