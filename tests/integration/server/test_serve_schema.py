"""Generated valid and invalid requests: none causes an internal error."""

import asyncio
import importlib.util
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote, urlencode

import httpx
import pytest
from asgi_server import serving as listening
from asgi_server import started
from fastapi.dependencies.utils import get_flat_dependant
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from postgres_fixture import BOTH_STORES, IN_POSTGRES
from process import missing
from pydantic import BaseModel
from serve_scene import ANNA, KEYS, QUESTION, Oracle, begin, opening, told, upload

from sleuth.studio.server.app import create_app
from sleuth.studio.server.schemas.checked import CheckedRoute
from sleuth.tools.settings import Settings

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
EXAMPLES = 8
"""Per route and phase."""


@pytest.fixture
def schemathesis() -> None:
    """Skip the test without schemathesis, or fail if skipping is not allowed."""
    if importlib.util.find_spec("schemathesis") is None:
        missing("schemathesis is not installed")


def test_description_names_the_media_types_of_files(tmp_path: Path) -> None:
    paths = create_app(Settings(home=tmp_path, embedder="none"), open_model=opening(Oracle())).openapi()["paths"]
    word, excel = (f"application/vnd.openxmlformats-officedocument.{kind}" for kind in ("word", "spreadsheet"))
    for name, kinds in {
        "table": {"text/csv", "text/markdown", "application/json", f"{excel}ml.sheet"},
        "report": {"text/markdown", "text/html", f"{word}processingml.document"},
    }.items():
        assert paths[f"/v1/runs/{{thread}}/{name}"]["get"]["responses"]["200"]["content"].keys() == kinds


@pytest.mark.nightly
@IN_POSTGRES  # it refuses more than SQLite
@pytest.mark.usefixtures("schemathesis")
async def test_no_request_causes_an_internal_error(tmp_path: Path, database_url: str | None) -> None:
    settings = Settings(home=tmp_path, embedder="none", api_keys=KEYS, database_url=database_url)
    app = create_app(settings, open_model=opening(Oracle()))
    async with app.router.lifespan_context(app), listening(app) as url:
        async with httpx.AsyncClient(base_url=url, headers=ANNA, timeout=60, trust_env=False) as client:
            await upload(client)
            await told(client, await begin(client))
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--no-color"]
        command += ["--checks", CHECKS, "--phases", "coverage,fuzzing", "--max-examples", str(EXAMPLES), "--seed", "1"]
        command += ["--header", f"Authorization: {ANNA['Authorization']}", "--request-timeout", "60"]
        process = await asyncio.create_subprocess_exec(
            *command, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        told_by, _ = await process.communicate()
    assert process.returncode == 0, told_by.decode()[-8000:]


PLACE = "1f0"
"""Replaced with the latest checkpoint of the run when a request is sent."""
RUN = {"assistant_id": "chat", "input": {"messages": [{"role": "user", "content": QUESTION, "id": "m1"}]}}
RUN |= {"context": {"method": "plain-rag", "max_calls": 5}, "config": {"configurable": {"thread_id": "x"}}}
RUN |= {"command": None, "checkpoint": {"checkpoint_id": None}, "checkpoint_id": None, "stream_mode": ["values"]}
OPTIONS = {"values": {"top_k": 3, "mode": "keyword"}, "budget": {"max_calls": 5, "max_seconds": 9.5}}
TALK = [{"role": "user", "content": "Hello!"}, {"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
BODIES: dict[str, Any] = {
    "POST /langgraph/assistants/search": {"graph_id": "chat", "limit": 3, "offset": 1},
    "POST /langgraph/threads": {"thread_id": "new", "metadata": {"title": "x"}, "if_exists": "do_nothing"},
    "POST /langgraph/threads/search": {"metadata": {"title": "x"}, "status": "idle", "limit": 3, "offset": 1},
    "PATCH /langgraph/threads/{thread}": {"metadata": {"title": "x"}},
    "POST /langgraph/threads/{thread}/state/checkpoint": {"checkpoint": {"checkpoint_id": PLACE}},
    "POST /langgraph/threads/{thread}/history": {
        "before": {"configurable": {"checkpoint_id": PLACE}},
        "checkpoint": {"checkpoint_id": PLACE, "checkpoint_ns": ""},
        "metadata": {"step": 1, "source": "loop"},
        "limit": 3,
    },
    "POST /langgraph/threads/{thread}/runs/stream": RUN,
    "POST /langgraph/threads/{thread}/runs/wait": RUN,
    "POST /langgraph/runs/stream": RUN,
    "POST /langgraph/runs/wait": RUN,
    "POST /langgraph/threads/{thread}/commands": {"id": 1, "method": "run.start", "params": RUN},
    "POST /langgraph/threads/{thread}/stream/events": {"channels": ["values"], "namespaces": [[]], "since": 1},
    "POST /v1/runs": {
        "question": QUESTION,
        "method": "plain-rag",
        **OPTIONS,
        "where": "tag=a",
        "model": "oracle",
        "after": "run-1",
    },
    "POST /v1/runs/{thread}/resume": {"budget": OPTIONS["budget"], "update": False, "reply": {"decisions": ["x"]}},
    "POST /v1/runs/{thread}/fork": {"at": PLACE, "state": {"notes": {}}, "method": "auto", "name": "fork-1"},
    "PUT /v1/runs/{thread}/title": {"title": "The light"},
    "PUT /v1/runs/{thread}/feedback": {"rating": "up", "comment": "Good."},
    "POST /v1/chat/completions": {"model": "plain-rag", "messages": TALK, "sleuth": OPTIONS, "stream_options": {}},
    "POST /v1/responses": {
        "model": "plain-rag",
        "input": TALK,
        "text": {"format": {"type": "text"}},
        "sleuth": OPTIONS,
    },
    "POST /v1/embeddings": {"model": "m", "input": ["A text."], "encoding_format": "float"},
}
"""A valid body of each route that reads one."""

NAMES = ["chat-1", "run-1", "light.md", "chat", "plain-rag"]
"""What a path can name: both kinds of threads, a document and graphs."""

ODD = ["", "a b", "a\x00b", "\ud800", "x" * 300, 2**64, -(2**70), float("nan"), 1.5, True, None, [], {}, ["a"]]
ODD += [{"a": 1}, {"": 1}, {"a b": 1}, {"\ud800": 1}, {"x": "\ud800"}, {"n": 2**64}, {"a\x00": 1}]
TEXTS = st.sampled_from([each for each in ODD if isinstance(each, str)] + ["..", str(2**64), "-1", "$.a'\"[", "٣"])
TEXTS |= st.text(max_size=8)
LEAVES = st.sampled_from(ODD) | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=4
)
DEEP = st.sampled_from([150, 400, 5000]).map(lambda levels: "[" * levels + "]" * levels)
"""JSON that is nested too deep."""


@cache
def routes() -> list[APIRoute]:
    app = create_app(Settings(embedder="none"))
    return [route for route in app.routes if isinstance(route, APIRoute)]


def key_of(route: APIRoute, method: str) -> str:
    return f"{method} {route.path}"


def parts_of(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """Return a JSON value and all values in it, by their paths."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = {path: value}
    for key, child in children:
        found |= parts_of(child, (*path, key))
    return found


def changed(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a JSON value with another value at a path."""
    if not path:
        return value
    changed = parent = deepcopy(body)
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return changed


Sent = tuple[str, str, str | None]
"""Method, address and body of a request."""


@st.composite
def bodies(draw: st.DrawFn, valid: Any) -> list[str]:
    """Bodies with one fault each, one for each place: another value, another key of an object, or deep nesting."""
    found = []
    for place, target in parts_of(valid).items():
        path = (*place, draw(TEXTS)) if isinstance(target, dict) and draw(st.booleans()) else place
        is_deep = draw(st.integers(0, 9)) == 0
        text = json.dumps(changed(valid, path, "DEEP" if is_deep else draw(VALUES)))
        found.append(text.replace('"DEEP"', draw(DEEP)))
    return found


@st.composite
def requests(draw: st.DrawFn) -> list[Sent]:
    """Requests to one route, mostly to one that reads a body."""
    reading = [route for route in routes() if route.body_field]
    route = draw(st.sampled_from(reading) | st.sampled_from(routes()))
    method = draw(st.sampled_from(sorted(route.methods)))
    parameters = get_flat_dependant(route.dependant)
    path = route.path.replace(":path", "")
    for name in (each.alias for each in parameters.path_params):
        is_known = method != "DELETE" and draw(st.integers(0, 3)) > 0
        text = draw(st.sampled_from(["chat-1", "run-1"] if name == "thread" else NAMES) if is_known else TEXTS)
        path = path.replace(f"{{{name}}}", quote(text.encode("utf-8", "surrogatepass"), safe=""))
    query = {each.alias: draw(TEXTS) for each in parameters.query_params if draw(st.booleans())}
    encoded = urlencode({name: text.encode("utf-8", "surrogatepass") for name, text in query.items()})
    valid = BODIES.get(key_of(route, method))
    return [(method, f"{path}?{encoded}", body) for body in (draw(bodies(valid)) if valid else [None])]


def test_each_route_that_reads_a_body_checks_it_and_is_tested() -> None:
    reading = [route for route in routes() if route.body_field]
    assert all(isinstance(route, CheckedRoute) for route in reading)
    read = {key_of(route, method) for route in reading for method in route.methods}
    assert read - {"POST /v1/documents"} == set(BODIES)


def model_of(route: APIRoute) -> type[BaseModel]:
    """Return the model of a route's body, which may be optional."""
    assert route.body_field
    annotation = route.body_field.field_info.annotation
    (model,) = [each for each in get_args(annotation) or (annotation,) if each is not type(None)]
    assert issubclass(model, BaseModel)
    return model


def test_null_is_as_if_a_field_of_a_body_were_left_out() -> None:
    for route in routes():
        valid = BODIES.get(key_of(route, min(route.methods)))
        if valid is None:
            continue
        model = model_of(route)
        required = {name: valid[name] for name, field in model.model_fields.items() if field.is_required()}
        nulls = dict.fromkeys(model.model_fields.keys() - required.keys())
        assert model.model_validate(required | nulls) == model.model_validate(required)


Ask = Callable[[str, str, str | None], Awaitable[tuple[int, str]]]


@pytest.fixture
async def ask(tmp_path: Path, database_url: str | None) -> AsyncIterator[Ask]:
    """Send a request to a server with documents, a run and a chat; return its status and text, if it has an end."""
    settings = Settings(home=tmp_path, embedder="none", database_url=database_url)
    app = create_app(settings, open_model=opening(Oracle()))
    async with (
        started(app),
        listening(app) as url,
        httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client,
    ):
        await upload(client)
        run = {"question": QUESTION, "method": "plain-rag", "thread": "run-1"}
        assert (await client.post("/v1/runs", json=run)).status_code == 201
        await told(client, "run-1")
        assert (await client.post("/langgraph/threads", json={"thread_id": "chat-1"})).status_code == 200
        (latest, *_) = (await client.get("/v1/runs/run-1/history")).json()

        async def ask(method: str, path: str, body: str | None) -> tuple[int, str]:
            content = body.replace(PLACE, latest["checkpoint"]) if body else None
            headers = {"Content-Type": "application/json"}
            async with client.stream(method, path, content=content, headers=headers) as reply:
                has_end = not reply.headers.get("content-type", "").startswith("text/event-stream")
                return reply.status_code, (await reply.aread()).decode("utf-8", "replace") if has_end else ""

        yield ask


SHARED = hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


async def check_no_internal_error(ask: Ask, caplog: pytest.LogCaptureFixture, sent: list[Sent]) -> None:
    for each in sent:
        caplog.clear()
        status, text = await ask(*each)
        assert status < 500 or (status, "does not support" in text) == (501, True), each
        assert [record.message for record in caplog.records if record.exc_info] == [], each


@hypothesis_settings(SHARED, max_examples=16)
@given(sent=requests())
async def test_no_odd_request_causes_an_internal_error(
    ask: Ask, caplog: pytest.LogCaptureFixture, sent: list[Sent]
) -> None:
    await check_no_internal_error(ask, caplog, sent)


@pytest.mark.nightly
@BOTH_STORES
@hypothesis_settings(SHARED, max_examples=100)
@given(sent=requests())
async def test_no_odd_request_of_many_causes_an_internal_error(
    ask: Ask, caplog: pytest.LogCaptureFixture, sent: list[Sent]
) -> None:
    await check_no_internal_error(ask, caplog, sent)


CHAT, HISTORY = "/langgraph/threads/chat-1", "/langgraph/threads/run-1/history"


async def test_value_that_cannot_be_stored_is_refused_with_its_place(ask: Ask) -> None:
    refused: list[tuple[str, str, object, str]] = [
        ("PATCH", CHAT, {"metadata": {"a": ["\ud800"]}}, "metadata.a.0 contains the character NUL or half of"),
        ("PATCH", CHAT, {"metadata": {"\ud800": 1}}, "metadata.\\\\ud800 contains the character NUL or half of"),
        ("PATCH", CHAT, {"metadata": {"n": 2**64}}, "metadata.n is an integer of more than 64 bits"),
        ("PATCH", CHAT, {"metadata": {"n": float("nan")}}, "metadata.n is not a finite number"),
        ("POST", "/langgraph/threads/search", {"offset": 2**64}, "offset is an integer of more than 64 bits"),
        ("POST", f"{CHAT}/runs/wait", RUN | {"config": {"configurable": ["a"]}}, "config.configurable"),
        ("POST", f"{CHAT}/commands", {"id": 1, "method": "\ud800"}, "method contains"),
        ("POST", HISTORY, {"before": {"configurable": 5}}, "before"),
        ("POST", HISTORY, {"before": "\ud800"}, "before contains"),
        ("POST", HISTORY, {"metadata": {"": 1}}, "metadata"),
        ("POST", HISTORY, {"metadata": {"a b": 1}}, "metadata"),
        ("POST", "/v1/runs/run-1/fork", {"at": PLACE, "state": {"x": 2**64}}, "state.x is an integer"),
        ("POST", "/v1/responses", {"model": "auto", "input": "a\x00b"}, "input contains the character NUL"),
        ("GET", "/v1/documents?find=%00", None, "The address contains the character NUL"),
    ]
    for method, path, body, says in refused:
        status, text = await ask(method, path, json.dumps(body) if body else None)
        assert (status, says in text) == (400, True), text
    for path in ("/assets/", "/favicon."):
        assert (await ask("GET", f"{path}{'x' * 300}", None))[0] == 404


async def test_deep_metadata_is_refused_and_the_thread_stays_readable(ask: Ask) -> None:
    deeper, more = "deeper than 100 levels", "more than 10,000 values"
    for levels, expected in ((90, (200, "")), (150, (400, deeper)), (400, (400, deeper)), (100_000, (413, more))):
        deep = "[" * levels + "]" * levels
        status, text = await ask("PATCH", CHAT, f'{{"metadata": {{"a": {deep}}}}}')
        assert (status, next((said for said in (deeper, more) if said in text), "")) == expected
        assert (await ask("GET", CHAT, None))[0] == 200


async def test_states_before_a_checkpoint_are_listed(ask: Ask) -> None:
    """LangGraph's SDKs send its id, the checkpoint, or a config."""
    states = {}
    for before in (PLACE, {"checkpoint_id": PLACE}, {"configurable": {"checkpoint_id": PLACE}}, None):
        _, text = await ask("POST", HISTORY, json.dumps({"before": before}))
        states[str(before)] = json.loads(text)
    every = states.pop("None")
    assert list(states.values()) == [every[1:]] * 3
