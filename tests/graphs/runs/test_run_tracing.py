"""Runs are traced where a caller or the setting asks for it, and never because of environment variables alone."""

import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tracers.langchain import LangChainTracer
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langsmith import Client, RunTree, tracing_context
from langsmith.utils import get_env_var
from requests import Response, Session
from scenes import Shelf, passage
from scripted_model import ScriptedModel

from sleuth.graphs.baselines.closed_book import Settings as ClosedBook
from sleuth.graphs.baselines.plain_rag import Settings as PlainRag
from sleuth.graphs.core import tracing
from sleuth.graphs.core.context import Context
from sleuth.graphs.core.subrun import in_fresh_context
from sleuth.graphs.registry import runnable
from sleuth.graphs.runs.execution import compile_method, stream_steps
from sleuth.studio.client.langchain_parts import tool_of
from sleuth.studio.client.opening import Opener
from sleuth.tools.errors import RunError
from sleuth.tools.search import Query
from sleuth.tools.settings import Tracing, tracing_variables
from sleuth.tools.storage.archive import MemoryArchive
from sleuth.tools.tracing.tracers import WITHOUT_TEXTS
from sleuth.tools.types import Hit

VARIABLES = ["LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"]
QUESTION = {"question": "How high is the tower?"}
TOWER = passage("tower", "The tower is in Varn. It is 30 m high.")


@dataclass
class Recorder(Session):
    """HTTP session of a LangSmith client that keeps what would be sent."""

    sent: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def request(self, method: Any, url: Any, **options: Any) -> Response:  # type: ignore[override]
        self.sent.append(f"{method} {url} {options.get('data')!r}")
        response = Response()
        response.status_code = 200
        response._content = b"{}"
        return response


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def client(recorder: Recorder) -> Client:
    url = "http://langsmith.invalid"
    return Client(api_url=url, api_key="key", session=recorder, auto_batch_tracing=False, info={"version": "1"})


@pytest.fixture
def asking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, client: Client) -> Iterator[None]:
    """An environment that asks for tracing by one of the variables, and a client for the tracer that it starts."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(getattr(request, "param", VARIABLES[0]), "true")
    get_env_var.cache_clear()
    tracing._warn_of_ignored_variables.cache_clear()
    with tracing_context(client=client):
        yield
    get_env_var.cache_clear()


def given(setting: Tracing = "off") -> Context:
    model = ScriptedModel([{"answer": "30 m", "known": True}])
    shelf = Shelf([TOWER])
    return Context(model=model, retriever=shelf, archive=MemoryArchive(), settings=ClosedBook(), tracing=setting)


def closed_book() -> Any:
    return runnable("closed-book").graph().compile(checkpointer=InMemorySaver())


def place(**more: Any) -> RunnableConfig:
    return RunnableConfig(configurable={"thread_id": "1"}, **more)


async def ended(**more: Any) -> bool:
    """Ask as an application does that compiles the graph itself."""
    state = await closed_book().ainvoke(QUESTION, place(**more), context=given())
    return bool(state["verdict"])


async def ran(setting: Tracing = "off") -> bool:
    """Ask as sleuth itself does."""
    graph = compile_method("closed-book", InMemorySaver())
    return bool([step async for step in stream_steps(graph, {**QUESTION}, place(), given(setting))])


async def through(state: dict[str, Any]) -> dict[str, Any]:
    assert await in_fresh_context(ended())
    return {}


def application() -> Any:
    """A graph of the caller's own, a node of which asks."""
    builder = StateGraph(dict)
    builder.add_node(through)
    builder.add_edge(START, "through")
    return builder.compile()


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("asking", VARIABLES, indirect=True)
async def test_environment_alone_traces_other_graphs(recorder: Recorder) -> None:
    await RunnableLambda(lambda text: text).ainvoke("mine")
    assert recorder.sent


async def run_synchronously() -> None:
    with pytest.raises(TypeError):  # nodes are coroutines
        closed_book().invoke(QUESTION, place(), context=given())


async def update_state() -> None:
    compiled = runnable("plain-rag").graph().compile(checkpointer=InMemorySaver())
    begun = await compiled.aupdate_state(place(), QUESTION, as_node=START)
    await compiled.aupdate_state(begun, QUESTION, as_node="answer")
    compiled.update_state(begun, QUESTION, as_node="answer")


async def stream_events() -> None:
    async for _ in closed_book().astream_events(QUESTION, place(), context=given(), version="v2"):
        pass


async def call_tool() -> None:
    async def ask(question: str) -> Any:
        raise RunError("nothing")

    assert await tool_of(ask, "closed-book", opener=Opener()).ainvoke(QUESTION) == "nothing"


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize(
    ("asking", "use"),
    [
        *((name, use) for name in VARIABLES for use in (ended, ran)),
        *((VARIABLES[0], use) for use in (run_synchronously, update_state, stream_events, call_tool)),
    ],
    indirect=["asking"],
)
async def test_environment_alone_traces_no_use_of_a_method(
    recorder: Recorder, use: Callable[[], Awaitable[object]]
) -> None:
    await use()
    assert recorder.sent == []


@pytest.mark.usefixtures("asking")
async def test_tracer_in_callbacks_receives_the_run(recorder: Recorder, client: Client) -> None:
    assert await ended(callbacks=[LangChainTracer(client=client)])
    assert any("How high" in each for each in recorder.sent)


@pytest.mark.usefixtures("asking")
async def test_tracer_bound_to_the_graph_receives_the_run(recorder: Recorder, client: Client) -> None:
    bound = closed_book().with_config(callbacks=[LangChainTracer(client=client)])
    await bound.ainvoke(QUESTION, place(), context=given())
    assert any("How high" in each for each in recorder.sent)


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("named", [True, False])
async def test_tracer_of_a_parent_run_receives_the_run(recorder: Recorder, client: Client, named: bool) -> None:
    config = RunnableConfig(callbacks=[LangChainTracer(client=client)]) if named else None
    await application().ainvoke({}, config)
    assert any("How high" in each for each in recorder.sent)


@pytest.mark.usefixtures("asking")
async def test_enabled_tracing_context_traces_the_run(recorder: Recorder, client: Client) -> None:
    with tracing_context(enabled=True, client=client):
        assert await ran()
    assert any("How high" in each for each in recorder.sent)


@pytest.mark.usefixtures("asking")
async def test_runs_of_the_application_are_not_kept_by_a_graph(recorder: Recorder, client: Client) -> None:
    compiled = closed_book()
    with tracing_context(parent=RunTree(name="mine", ls_client=client)):
        await compiled.ainvoke(QUESTION, place(), context=given())
        assert await ran()
    (untraced,) = compiled.config["callbacks"]
    assert not (untraced.run_map or untraced.order_map)
    assert any("How high" in each for each in recorder.sent)


@pytest.mark.usefixtures("asking")
async def test_application_keeps_its_own_tracing_after_a_run(recorder: Recorder) -> None:
    async for _ in closed_book().astream(QUESTION, place(), context=given()):
        await RunnableLambda(lambda text: text).ainvoke("mine")
    assert recorder.sent
    assert not any("How high" in each for each in recorder.sent)


@pytest.mark.usefixtures("asking")
async def test_ignored_variable_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger=tracing.__name__):
        assert await ran()
        assert await ran()
    (line,) = caplog.messages
    assert line.startswith(tuple(VARIABLES))
    assert "SLEUTH_TRACING=langsmith" in line


async def test_setting_traces_the_run(recorder: Recorder, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with tracing_context(client=client):
        assert await ran("langsmith")
    assert any("How high" in each for each in recorder.sent)


class Lost(Shelf):
    async def search(self, query: Query) -> list[Hit]:
        raise RuntimeError(f"lost: {query.text}")


async def looked_up(shelf: Shelf) -> bool:
    reading = {"answerable": True, "answer": "30 m", "citations": [{"source": 1, "quote": "It is 30 m high."}]}
    settings = PlainRag(mode="keyword", check_evidence=False)
    context = replace(given("langsmith"), model=ScriptedModel([reading]), retriever=shelf, settings=settings)
    graph = compile_method("plain-rag", InMemorySaver())
    return bool([step async for step in stream_steps(graph, {**QUESTION}, place(), context)])


@pytest.mark.parametrize("texts", [False, True])
async def test_langsmith_receives_texts_only_on_request(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, texts: bool
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    options: dict[str, Any] = {} if texts else WITHOUT_TEXTS
    url = "http://langsmith.invalid"
    hiding = Client(
        api_url=url, api_key="key", session=recorder, auto_batch_tracing=False, info={"version": "1"}, **options
    )
    with tracing_context(client=hiding):
        assert await looked_up(Shelf([TOWER]))
        with pytest.raises(RuntimeError):
            await looked_up(Lost([TOWER]))
    sent = "".join(recorder.sent)
    assert "retrieve" in sent and "RuntimeError" in sent and "thread_id" in sent
    assert [text in sent for text in ("How high", "It is 30 m high", "Varn")] == [texts] * 3


@pytest.mark.parametrize("value", ["", "0", "false", "False", " off "])
def test_variable_that_is_off_is_not_reported(value: str) -> None:
    assert tracing_variables({"LANGSMITH_TRACING": value}) == []
    assert tracing_variables({"LANGSMITH_TRACING": "true", "LANGCHAIN_TRACING": value}) == ["LANGSMITH_TRACING"]
