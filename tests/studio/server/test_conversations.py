"""Follow-ups that an older release stored in a table of their own."""

import json

from sqlalchemy import text

from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.persistence.threads import FollowUp
from sleuth.graphs.runs.service import RunService
from sleuth.studio.server.runs.conversations import adopt_follow_ups, conversation_of
from sleuth.tools.settings import Settings

COLUMNS = "thread, after, conversation, asked, cost, warnings"


async def test_adopted_follow_ups_are_part_of_their_conversation(settings: Settings) -> None:
    async with open_store(settings) as store:
        runs = RunService(store)
        for id in ("first", "second", "other"):
            await runs.start("Who built it?", "plain-rag", thread=id)
        await adopt_follow_ups(store.engine)  # without the table
        values = {"asked": "And who?", "cost": json.dumps({"calls": 1, "prompt_tokens": 2}), "warnings": "[]"}
        with store.engine.begin() as connection:
            connection.execute(text(f"CREATE TABLE sleuth_serve_follow_ups ({COLUMNS})"))
            for thread in ("second", "deleted"):
                row = {**values, "thread": thread, "after": "first", "conversation": "first"}
                marks = ", ".join(f":{name}" for name in row)
                connection.execute(
                    text(f"INSERT INTO sleuth_serve_follow_ups ({', '.join(row)}) VALUES ({marks})"), row
                )
        for _ in range(2):
            await adopt_follow_ups(store.engine)
        for id in ("first", "second"):
            rows = await conversation_of(runs, await store.threads.get(id))
            assert [row.id for row in rows] == ["first", "second"]
        stored = (await store.threads.get("second")).options.follow_up
        assert isinstance(stored, FollowUp)
        assert (stored.after, stored.asked, stored.cost["calls"]) == ("first", "And who?", 1)
