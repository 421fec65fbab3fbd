"""Deletion of a chat leaves nothing of it, also by another server that shares the store."""

import pytest
from postgres_fixture import BOTH_STORES
from serve_scene import Serve, app_of
from sqlalchemy import MetaData, select

from sleuth.graphs.persistence.threads import Origin
from sleuth.studio.server.state import ServerState, server_state_of
from sleuth.tools.sources.web_pages.page import PageText


async def begin_tree(server: ServerState) -> None:
    """Store a chat whose turn has a run, which has a run of its own; each with a page and an event."""
    runs = server.tenants.read_only_runs("local")
    outer = ""
    for id, method in (("talk", "chat"), ("talk.1", "auto"), ("talk.1.1", "plain-rag")):
        origin = Origin(parent=outer, checkpoint="", hop=1) if outer else None
        page = PageText(id=id, name="page", text=f"A confidential text of {id}.")
        await runs.start("A confidential question?", method, thread=id, pages=[page], origin=origin)
        await server.log.open(id)
        await server.log.append(id, "answer", {"text": "A confidential answer."}, key="1")
        outer = id


def rows_with(server: ServerState, word: str) -> dict[str, int]:
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
        before = rows_with(server, "confidential")
        await begin_tree(server)
        assert len(rows_with(server, "confidential")) >= 4
        assert (await second.delete(f"{path}/talk")).status_code == 204
        assert rows_with(server, "confidential") == before
        assert (await first.get("/v1/runs")).json() == []
