"""The runs API: started, followed, stopped, resumed, looked at, forked, removed; across restarts."""

import sqlite3
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import httpx
import pytest
from asgi_server import serving as serving_on_a_port
from asgi_server import started
from cli_process import sleuth
from postgres_fixture import BOTH_STORES
from serve_scene import (
    LIGHT,
    QUESTION,
    Oracle,
    Serve,
    app_of,
    begin,
    begin_held,
    client_of,
    opening,
    steps_in,
    told,
    upload,
)
from sqlalchemy import MetaData, select
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from sleuth.agents.model import NamedModel
from sleuth.graphs.persistence.thread import Origin
from sleuth.graphs.runs.request import RunRequest
from sleuth.studio.server.app import create_app
from sleuth.studio.server.state import ServerState, server_state_of
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.settings import Settings
from sleuth.tools.web_pages.page import PageText

STOPPED = {"state": "stopped"}
STEPS = [(node, state) for node in ("retrieve", "answer", "check_evidence") for state in ("started", "finished")]


async def test_run_streams_its_steps_and_ends_with_its_answer(client: httpx.AsyncClient) -> None:
    await upload(client)
    thread = await begin(client)
    events = await told(client, thread)
    assert steps_in(events) == STEPS
    assert [id for id, _, _ in events] == [1, 2, 3, 4, 5, 6, 7]
    _, name, answer = events[-1]
    assert (name, answer["status"], answer["text"]) == ("answer", "answered", "Edric Gannow")
    assert answer["citations"][0]["quote"] == "built by Edric Gannow"
    shown = (await client.get(f"/v1/runs/{thread}")).json()
    assert shown["thread"]["state"] == "done"
    assert shown["answer"] == answer
    assert shown["state"]["question"] == QUESTION
    assert shown["cost"]["calls"] == 1
    assert [row["id"] for row in (await client.get("/v1/runs")).json()] == [thread]
    assert await told(client, thread, after=2) == events[2:]
    assert await told(client, thread, after=len(events)) == []


async def test_reader_answers_without_a_model_server(tmp_path: Path) -> None:
    app = create_app(Settings(home=tmp_path, embedder="none", model_url="http://127.0.0.1:9/v1"))
    async with started(app), client_of(app) as client:
        await upload(client)
        _, name, answer = (await told(client, await begin(client, method="reader")))[-1]
        assert (name, answer["status"], answer["text"]) == ("answer", "answered", "Edric Gannow")
        assert (answer["cost"]["calls"], answer["citations"][0]["document"]) == (0, "light.md")
        begun = await client.post("/v1/runs", json={"question": QUESTION})
        assert (await told(client, begun.json()["thread"]))[-1][2]["method"] == "reader", "as no method is named"
        _, name, error = (await told(client, await begin(client)))[-1]
        assert (name, error["type"]) == ("error", "model_error")
        assert "http://127.0.0.1:9/v1" in error["message"]


async def test_resumed_run_that_has_ended_needs_no_model_server(serving: Serve, tmp_path: Path) -> None:
    async with serving(filled=True) as client:
        thread = await begin(client)
        answer = (await told(client, thread))[-1]
    settings = Settings(home=tmp_path / "home", embedder="none", model_url="http://127.0.0.1:9/v1")
    app = create_app(settings)
    async with started(app), client_of(app) as client:
        assert (await client.post(f"/v1/runs/{thread}/resume")).status_code == 202
        assert (await told(client, thread))[-1][1:] == answer[1:]
        assert (await client.get(f"/v1/runs/{thread}")).json()["thread"]["state"] == "done"


async def test_shown_citation_of_an_updated_document_is_marked(client: httpx.AsyncClient) -> None:
    await upload(client)
    thread = await begin(client)
    await told(client, thread)
    await upload(client, {"light.md": "# The Pellowrig Light\n\nIt was built by Oda Brask."})
    (citation,) = (await client.get(f"/v1/runs/{thread}")).json()["answer"]["citations"]
    assert citation["changed"] is True


@BOTH_STORES
async def test_runs_are_filtered_and_searched(client: httpx.AsyncClient, oracle: Oracle) -> None:
    await upload(client)
    answered = await begin(client)
    await told(client, answered)
    stopped = await begin_held(client, oracle)
    assert (await client.post(f"/v1/runs/{stopped}/stop")).status_code == 202

    async def listed(**wanted: object) -> list[str]:
        found = await client.get("/v1/runs", params=wanted)  # type: ignore[arg-type]
        assert found.status_code == 200, found.text
        return [row["id"] for row in found.json()]

    (row,) = (await client.get("/v1/runs", params={"status": "answered"})).json()
    assert (row["id"], row["outcome"], row["answer"], row["calls"]) == (answered, "answered", "Edric Gannow", 1)
    assert row["seconds"] >= 0
    assert await listed(status=["stopped", "failed"]) == [stopped]
    assert await listed(find="gann EDR") == [answered]
    assert await listed(method="par-rag") == []
    assert await listed(since="2020-01-01", until="2020-01-02") == []
    first = (await client.get("/v1/runs", params={"limit": 1})).json()[0]
    assert await listed(before=first["updated_at"], before_id=first["id"]) == [answered]
    assert (await client.get("/v1/runs", params={"status": "done-ish"})).status_code == 400
    await client.delete(f"/v1/runs/{answered}")
    assert await listed(find="gannow") == []


@BOTH_STORES
async def test_run_is_stopped_and_resumed(client: httpx.AsyncClient, oracle: Oracle) -> None:
    await upload(client)
    thread = await begin_held(client, oracle)
    busy = [await client.delete(f"/v1/runs/{thread}"), await client.post(f"/v1/runs/{thread}/resume")]
    assert [each.status_code for each in busy] == [409, 409]
    stopped = await client.post(f"/v1/runs/{thread}/stop")
    assert (stopped.status_code, stopped.json()) == (202, {"thread": thread, **STOPPED})
    assert (await told(client, thread))[-1][1] == "stopped"
    assert STOPPED.items() <= (await client.get(f"/v1/runs/{thread}")).json()["thread"].items()
    assert (await client.post(f"/v1/runs/{thread}/stop")).status_code == 409
    oracle.free.set()
    resumed = await client.post(f"/v1/runs/{thread}/resume")
    assert resumed.status_code == 202
    events = await told(client, thread)
    assert steps_in(events) == STEPS, "a step came twice"
    assert [name for _, name, _ in events if name != "step"] == ["stopped", "answer"]


@BOTH_STORES
async def test_run_is_resumed_when_the_server_restarts(serving: Serve, oracle: Oracle) -> None:
    async with serving(filled=True) as client:
        thread = await begin_held(client, oracle)
    oracle.free.set()
    async with serving() as client:
        events = await told(client, thread)
        assert steps_in(events) == STEPS
        assert events[-1][1] == "answer"
        assert (await client.get(f"/v1/runs/{thread}")).json()["thread"]["state"] == "done"
    async with serving() as client:
        assert await told(client, thread) == events, "a finished run was run again"


async def test_second_server_does_not_touch_runs_of_the_first(serving: Serve, oracle: Oracle) -> None:
    async with serving() as first:
        await upload(first)
        thread = await begin_held(first, oracle)
        async with serving() as second:
            assert (await second.get(f"/v1/runs/{thread}")).json()["thread"]["state"] == "running"
        oracle.free.set()
        events = await told(first, thread)
        assert steps_in(events) == STEPS
        assert events[-1][1] == "answer"
        assert len(oracle.requests) == 1


async def test_run_error_is_an_event_and_the_run_can_be_resumed(client: httpx.AsyncClient, oracle: Oracle) -> None:
    await upload(client)
    good, oracle.said = oracle.said, lambda _: ModelUnavailable("The model server is down.")
    thread = await begin(client)
    _, name, error = (await told(client, thread))[-1]
    assert (name, error) == ("error", {"message": "The model server is down.", "type": "model_error"})
    assert (await client.get(f"/v1/runs/{thread}")).json()["thread"]["problem"] == "The model server is down."
    oracle.said = good
    await client.post(f"/v1/runs/{thread}/resume", json={"budget": {"max_calls": 5}})
    assert (await told(client, thread))[-1][1] == "answer"


@BOTH_STORES
async def test_run_is_shown_forked_and_deleted(client: httpx.AsyncClient) -> None:
    await upload(client)
    thread = await begin(client)
    await told(client, thread)
    history = (await client.get(f"/v1/runs/{thread}/history")).json()
    assert [moment["node"] for moment in history] == [["check_evidence"], ["answer"], ["retrieve"], [], []]
    last = (await client.get(f"/v1/runs/{thread}/checkpoints/{history[1]['checkpoint']}")).json()
    [call] = last["calls"]
    assert (call["node"], call["role"], call["name"]) == ("answer", "reader", "reader/read")
    assert LIGHT in call["prompt"]
    assert "Edric Gannow" in call["reply"]
    before = (await client.get(f"/v1/runs/{thread}/checkpoints/{history[2]['checkpoint']}")).json()
    assert before["calls"] == []
    assert len(before["values"]["evidence"]) == 2
    for odd in ({"evidence": 7}, {"notes": "x"}, {"question": ["q"]}, {"nothing": 1}):
        refused = await client.post(f"/v1/runs/{thread}/fork", json={"at": history[2]["checkpoint"], "state": odd})
        assert refused.status_code == 400, odd
    changed = {"at": history[2]["checkpoint"], "state": {"evidence": before["values"]["evidence"][:1]}}
    forked = await client.post(f"/v1/runs/{thread}/fork", json=changed)
    assert (forked.status_code, forked.json()["thread"]) == (201, thread)
    events = await told(client, thread)
    await client.post(f"/v1/runs/{thread}/resume")
    after = await told(client, thread, after=events[-1][0])
    assert steps_in(after) == STEPS[2:]
    assert after[-1][1] == "answer"
    assert (await client.get(f"/v1/runs/{thread}/export")).json()["thread"]["id"] == thread
    assert (await client.delete(f"/v1/runs/{thread}")).status_code == 204
    gone = [await client.get(f"/v1/runs/{thread}{end}") for end in ("", "/events", "/history", "/export")]
    assert [each.status_code for each in gone] == [404] * 4


async def test_runs_pruned_by_the_command_line_leave_no_events(client: httpx.AsyncClient, tmp_path: Path) -> None:
    locks = tmp_path / "home" / "leases"
    of_the_store = {*locks.iterdir()}
    await upload(client)
    thread = await begin(client)
    assert await told(client, thread)
    left = {"sleuth_threads": 1, "sleuth_serve_events": 7}
    assert rows(tmp_path / "home" / "runs.sqlite", left) == left
    assert len({*locks.iterdir()} - of_the_store) == 1
    prune = ("runs", "prune", "--older-than", "0s", "--yes", "--json")
    pruned = await sleuth(*prune, SLEUTH_HOME=str(tmp_path / "home"))
    assert pruned.json()["threads"] == 1
    assert rows(tmp_path / "home" / "runs.sqlite", left) == dict.fromkeys(left, 0)
    assert {*locks.iterdir()} == of_the_store


def rows(file: Path, tables: Iterable[str]) -> dict[str, int]:
    """Return the number of rows of each table."""
    with closing(sqlite3.connect(file)) as connection:
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}


async def test_errors_have_the_format_of_openai(client: httpx.AsyncClient) -> None:
    empty = await client.post("/v1/runs", json={"question": QUESTION})
    assert (empty.status_code, empty.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "no documents" in empty.json()["error"]["message"]
    await upload(client)
    wrong = {
        "an unknown method": {"question": "q", "method": "plane-rag"},
        "an unknown setting": {"question": "q", "values": {"nothing": 1}},
        "no question": {"question": "   "},
        "a field too many": {"question": "q", "colour": "red"},
        "a budget below nothing": {"question": "q", "budget": {"max_calls": 0}},
        "a name that is a path": {"question": "q", "thread": "../x"},
    }
    for what, body in wrong.items():
        reply = await client.post("/v1/runs", json=body)
        assert reply.status_code == 400, what
        assert set(reply.json()["error"]) == {"message", "type", "code", "param"}, what
    odd = [
        ("/v1/runs", b'{"question": "\\ud800"}'),
        ("/v1/chat/completions", b'{"model": "plain-rag", "messages": [{"role": "user", "content": "\\ud800"}]}'),
    ]
    for path, body in odd:
        assert (await client.post(path, content=body, headers={"Content-Type": "application/json"})).status_code == 400
    assert (await client.get("/v1/runs/none")).json()["error"]["code"] == "unknown_name"
    assert (await client.get("/v1/nothing")).json()["error"]["type"] == "not_found_error"
    assert (await client.put("/v1/runs")).status_code == 405


async def begin_tree(server: ServerState) -> None:
    """Store a chat whose turn has a run, which has a run of its own; each with a page and an event."""
    runs = server.tenants.read_only_runs("local")
    outer = ""
    for id, method in (("talk", "chat"), ("talk.1", "auto"), ("talk.1.1", "plain-rag")):
        origin = Origin(parent=outer, parent_checkpoint="", subrun=1) if outer else None
        page = PageText(id=id, name="page", text=f"A confidential text of {id}.")
        await runs.start(
            RunRequest(question="A confidential question?", method=method, thread=id, pages=[page]), origin=origin
        )
        await server.log.open(id)
        await server.log.append(id, "answer", {"text": "A confidential answer."}, key="1")
        outer = id


def rows_containing(server: ServerState, word: str) -> dict[str, int]:
    """Count the rows of each table of the runs that contain a word, and all archived texts."""
    engine, tables = server.tenants.store.engine, MetaData()
    tables.reflect(engine)
    with engine.connect() as connection:
        rows = {name: connection.execute(select(table)).all() for name, table in tables.tables.items()}
    found = {name: sum(word in str(tuple(row)) for row in each) for name, each in rows.items()}
    return {name: count for name, count in found.items() if count} | {"texts": len(rows["sleuth_texts"])}


@BOTH_STORES
@pytest.mark.parametrize("path", ["/v1/runs", "/langgraph/threads"])
async def test_deleted_chat_leaves_no_row(serving: Serve, path: str) -> None:
    async with serving() as first, serving() as second:
        server = server_state_of(app_of(first))
        before = rows_containing(server, "confidential")
        await begin_tree(server)
        assert set(rows_containing(server, "confidential")) == {"sleuth_serve_events", "sleuth_threads", "texts"}
        assert (await second.delete(f"{path}/talk")).status_code == 204
        assert rows_containing(server, "confidential") == before
        assert (await first.get("/v1/runs")).json() == []


async def test_run_has_the_title_that_a_person_gives_it(client: httpx.AsyncClient) -> None:
    await upload(client)
    thread = await begin(client)
    for title in ("The light", ""):
        named = await client.put(f"/v1/runs/{thread}/title", json={"title": title})
        assert named.status_code == 204
        assert [row["title"] for row in (await client.get("/v1/runs")).json()] == [title]


async def test_run_uses_the_model_that_it_names_also_after_a_follow_up(tmp_path: Path, oracle: Oracle) -> None:
    opened: list[str | None] = []

    def open_model(settings: Settings) -> AbstractAsyncContextManager[NamedModel]:
        opened.append(settings.model)
        return opening(oracle)(settings)

    app = create_app(Settings(home=tmp_path, embedder="none"), open_model=open_model)
    async with started(app), client_of(app) as client:
        await upload(client)
        form = {"question": QUESTION, "method": "plain-rag", "model": "larger"}
        first = (await client.post("/v1/runs", json=form)).json()["thread"]
        await told(client, first)
        assert opened[-1] == "larger"
        after = {"question": "And when?", "method": "plain-rag", "after": first, "model": "larger"}
        chat = (await client.post("/v1/runs", json=after)).json()["thread"]
        options = (await client.get(f"/v1/runs/{chat}")).json()["thread"]["options"]
        assert (options["after"], options["model"]) == (first, "larger")
        await told(client, chat)
        assert opened.count("larger") == 1


async def test_models_of_the_server_are_offered(client: httpx.AsyncClient, tmp_path: Path) -> None:
    assert (await client.get("/v1/offered-models")).json() == [], "no model server answers"
    models = Starlette(routes=[Route("/v1/models", lambda _: JSONResponse({"data": [{"id": "a"}, {"id": "b"}]}))])
    async with serving_on_a_port(models) as url:
        app = create_app(Settings(home=tmp_path, embedder="none", model_url=f"{url}/v1"))
        async with started(app), client_of(app) as other:
            assert (await other.get("/v1/offered-models")).json() == ["a", "b"]
