"""A survey over HTTP: its rows as they are read, its table as a file, and the documents that are new."""

import asyncio
from io import BytesIO
from typing import Any

import httpx
from openpyxl import load_workbook
from serve_scene import FILES, LIGHT, QUESTION, Oracle, begin, told, upload

from sleuth.agents.model import Request

COLUMN = {"name": "builder", "question": QUESTION, "kind": "text"}


def reads(request: Request) -> Any:
    if request.role != "reader":
        return {"sentence": "Edric Gannow built it."}
    is_light = LIGHT in request.input["sources"][0]["text"]
    quotes = [{"source": 1, "quote": "built by Edric Gannow"}] if is_light else []
    return {"answerable": is_light, "answer": "Edric Gannow" if is_light else "", "citations": quotes}


async def test_survey_fills_a_table_that_can_be_saved_and_updated(client: httpx.AsyncClient, oracle: Oracle) -> None:
    oracle.said = reads
    await upload(client)
    asked = {"question": "Who built what?", "method": "survey", "values": {"columns": [COLUMN]}}
    thread = (await client.post("/v1/runs", json=asked)).json()["thread"]
    events = await told(client, thread)
    rows = [step["update"]["rows"] for _, _, step in events if step.get("node") == "read" and step["update"]]
    assert len(rows) == len(FILES)
    answer = events[-1][2]
    cells = {row["title"]: row["cells"]["builder"]["value"] for row in answer["table"]["rows"]}
    assert {title for title, value in cells.items() if value} == {"The Pellowrig Light"}
    assert len(answer["citations"]) == 1
    saved = await client.get(f"/v1/runs/{thread}/table", params={"format": "xlsx"})
    assert saved.headers["content-disposition"] == f'attachment; filename="survey-{thread}.xlsx"'
    assert load_workbook(BytesIO(saved.content))["survey"].max_row == 1 + len(FILES)
    text = (await client.get(f"/v1/runs/{thread}/table")).text
    assert "Edric Gannow,built by Edric Gannow" in text
    before = len(oracle.requests)
    await asyncio.sleep(1)  # a change is seen by the second in which a document was added
    await upload(client, {"lamp.txt": f"A lamp.\n\n{LIGHT}", "fair.txt": "The Kelp Fair has moved."})
    assert (await client.post(f"/v1/runs/{thread}/resume", json={"update": True})).status_code == 202
    updated = (await told(client, thread))[-1][2]
    assert len(oracle.requests) == before + 3  # the new and the changed document, and the sentence
    assert "documents asked: 4 of 4" in updated["table"]["figures"]


async def test_only_a_survey_has_a_table_and_is_updated(client: httpx.AsyncClient) -> None:
    await upload(client)
    thread = await begin(client)
    await told(client, thread)
    refused = [
        await client.get(f"/v1/runs/{thread}/table"),
        await client.post(f"/v1/runs/{thread}/resume", json={"update": True}),
    ]
    assert [each.status_code for each in refused] == [400, 400]
    assert all("survey" in each.json()["error"]["message"] for each in refused)
    wrong = await client.post("/v1/runs", json={"question": "?", "method": "survey", "values": {"columns": [{}]}})
    assert wrong.status_code == 400
    assert "columns" in wrong.json()["error"]["message"]
