"""A knowledge graph over HTTP: what is sent, and what every kind of bad answer comes to."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from asgi_server import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from sleuth.tools.sources.knowledge_graph.backends import MAX_BYTES, open_graph
from sleuth.tools.sources.knowledge_graph.lookups import look_up

pytestmark = pytest.mark.integration

ODD = {
    "error": PlainTextResponse("no", status_code=500),
    "prose": PlainTextResponse("I know nothing."),
    "list": JSONResponse([1]),
    "other": JSONResponse({"answer": 1}),
    "huge": PlainTextResponse("x" * (MAX_BYTES + 1)),
}


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


async def test_calls_are_sent_as_the_benchmark_has_them() -> None:
    async with served() as (url, seen), open_graph(url) as graph:
        found = await look_up(
            graph,
            [
                ("movie_get_movie_info_by_id", {"id": 7}),
                ("sports_soccer_get_games_on_date", {"date": "2024-03"}),
                ("music_get_billboard_rank_date", {"rank": 1, "date": "2002-05-04"}),
                ("music_grammy_get_all_awarded_artists", {}),
            ],
        )
        assert sorted(seen, key=str) == sorted(
            [
                ("/movie/get_movie_info_by_id", {"query": 7}),
                ("/sports/soccer/get_games_on_date", {"date": "2024-03"}),
                ("/music/get_billboard_rank_date", {"rank": 1, "date": "2002-05-04"}),
                ("/music/grammy_get_all_awarded_artists", {}),
            ],
            key=str,
        )
        assert found[0].text == '{"echo": {"query": 7}}'


@pytest.mark.parametrize(
    ("entity", "problem"),
    [
        ("error", "the server answers 500"),
        ("prose", "has no result in JSON"),
        ("list", "has no result in JSON"),
        ("other", "has no result in JSON"),
        ("huge", "larger than"),
    ],
)
async def test_what_is_no_answer_is_a_problem_of_that_call(entity: str, problem: str) -> None:
    async with served() as (url, _), open_graph(url) as graph:
        bad, good = await look_up(graph, [("open_get_entity", {"entity": each}) for each in (entity, "fine")])
        assert problem in bad.problem
        assert good.text == '{"echo": {"query": "fine"}}'


async def test_a_server_that_is_not_there_is_a_problem_too() -> None:
    async with open_graph("http://127.0.0.1:9") as graph:
        (found,) = await look_up(graph, [("open_get_entity", {"entity": "x"})])
        assert "does not answer" in found.problem
