"""A knowledge graph over HTTP: what is sent, and what every kind of bad answer comes to."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from asgi_server import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from sleuth.graphs.methods.hybrid_rag.knowledge_graph.backends import open_graph
from sleuth.graphs.methods.hybrid_rag.knowledge_graph.functions import look_up
from sleuth.tools.http import MAX_REPLY_BYTES

ODD = {
    "error": PlainTextResponse("no", status_code=500),
    "prose": PlainTextResponse("I know nothing."),
    "other": JSONResponse({"answer": 1}),
    "huge": PlainTextResponse("x" * (MAX_REPLY_BYTES + 1)),
}
PROBLEMS = ("the server answers 500", "has no result in JSON", "has no result in JSON", "larger than")


@asynccontextmanager
async def served() -> AsyncIterator[tuple[str, list[tuple[str, object]]]]:
    """A server that answers with what it was sent, and the requests that it got."""
    seen: list[tuple[str, object]] = []

    async def answer(request: Request) -> Response:
        body = json.loads(await request.body())
        seen.append((request.url.path, body))
        return ODD.get(body.get("query", ""), JSONResponse({"result": {"echo": body}}))

    app = Starlette(routes=[Route("/{rest:path}", answer, methods=["POST"])])
    async with serving(app) as url:
        yield url, seen


SENT = {
    "movie_get_movie_info_by_id": ({"id": 7}, "/movie/get_movie_info_by_id", {"query": 7}),
    "sports_soccer_get_games_on_date": ({"date": "2024"}, "/sports/soccer/get_games_on_date", {"date": "2024"}),
    "music_grammy_get_all_awarded_artists": ({}, "/music/grammy_get_all_awarded_artists", {}),
}


async def test_calls_are_sent_as_the_benchmark_has_them() -> None:
    async with served() as (url, seen), open_graph(url) as graph:
        found = await look_up(graph, [(name, arguments) for name, (arguments, *_) in SENT.items()])
        assert sorted(seen, key=str) == sorted([(path, body) for _, path, body in SENT.values()], key=str)
        assert found[0].text == '{"echo": {"query": 7}}'


async def test_what_is_no_answer_is_a_problem_of_that_call() -> None:
    async with served() as (url, _), open_graph(url) as graph:
        *odd, good = await look_up(graph, [("open_get_entity", {"entity": each}) for each in (*ODD, "fine")])
        for found, problem in zip(odd, PROBLEMS, strict=True):
            assert problem in found.problem
        assert good.text == '{"echo": {"query": "fine"}}'
    async with open_graph("http://127.0.0.1:9") as graph:
        (found,) = await look_up(graph, [("open_get_entity", {"entity": "x"})])
        assert "does not answer" in found.problem
