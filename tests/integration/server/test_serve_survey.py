"""A report and a survey over HTTP: their outline or rows, their files, and documents that are new."""

import asyncio
from io import BytesIO
from typing import Any

import httpx
from docx import Document
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


async def test_only_a_survey_has_a_table_and_only_a_report_is_saved_as_one(client: httpx.AsyncClient) -> None:
    await upload(client)
    thread = await begin(client)
    await told(client, thread)
    refused = {
        await client.get(f"/v1/runs/{thread}/table"): "survey",
        await client.post(f"/v1/runs/{thread}/resume", json={"update": True}): "survey",
        await client.get(f"/v1/runs/{thread}/report"): "no report",
    }
    for method, setting in (("survey", "columns"), ("report", "sections")):
        wrong = {"question": "?", "method": method, "values": {setting: [{}]}}
        refused[await client.post("/v1/runs", json=wrong)] = setting
    for reply, reason in refused.items():
        assert (reply.status_code, reason in reply.json()["error"]["message"]) == (400, True), reply.text


SENTENCE = "The Pellowrig Light was built by Edric Gannow."


def writes(request: Request) -> Any:
    if request.prompt == "planner/outline":
        return {"title": "The Light & its builder", "sections": [{"heading": "Builder", "question": QUESTION}]}
    if request.role == "evaluator":
        return "Yes"
    number = next(at for at, each in enumerate(request.input["sources"], start=1) if LIGHT in each["text"])
    if request.prompt == "answerer/section":
        return {"sentences": [{"text": SENTENCE, "sources": [number]}]}
    quotes = [{"source": number, "quote": "built by Edric Gannow"}]
    return {"answerable": True, "answer": "Edric Gannow", "citations": quotes}


async def test_report_waits_for_its_outline_and_is_saved(client: httpx.AsyncClient, oracle: Oracle) -> None:
    oracle.said = writes
    await upload(client)
    values = {"approve": True, "method": "plain-rag"}
    asked = {"question": "What is known about the light?", "method": "report", "values": values}
    thread = (await client.post("/v1/runs", json=asked)).json()["thread"]
    waiting = (await told(client, thread))[-1][2]
    assert waiting["status"] == "waiting"
    (request,) = waiting["asks"]["action_requests"]
    assert request["args"]["sections"] == [{"heading": "Builder", "question": QUESTION}]
    edited = {**request["args"]["sections"][0], "heading": "Who built it"}
    reply = {
        "decisions": [{"type": "edit", "edited_action": {"name": request["name"], "args": {"sections": [edited]}}}]
    }
    assert (await client.post(f"/v1/runs/{thread}/resume", json={"reply": reply})).status_code == 202
    answer = (await told(client, thread))[-1][2]
    assert answer["text"] == f"# The Light & its builder\n\n## Who built it\n\n{SENTENCE}"
    assert [(each["quote"], each["sentence_ends"]) for each in answer["citations"]] == [(LIGHT, [len(answer["text"])])]

    saved = {format: await client.get(f"/v1/runs/{thread}/report", params={"format": format}) for format in FORMATS}
    assert saved["md"].text.endswith(f"{SENTENCE}[^1]\n\n[^1]: The Pellowrig Light: “{LIGHT}”\n")
    assert "<h1>The Light &amp; its builder</h1>" in saved["html"].text
    assert f'<p>{SENTENCE}<sup><a href="#source-1">1</a></sup></p>' in saved["html"].text
    paragraphs = [(each.style.name, each.text) for each in Document(BytesIO(saved["docx"].content)).paragraphs]
    assert paragraphs == [
        ("Title", "The Light & its builder"),
        ("Heading 1", "Who built it"),
        ("Normal", f"{SENTENCE} 1"),
        ("Heading 1", "Sources"),
        ("List Number", f"The Pellowrig Light: “{LIGHT}”"),
    ]
    again = await client.post(f"/v1/runs/{thread}/resume", json={"reply": "approve"})
    assert (again.status_code, "does not wait" in again.text) == (409, True)


FORMATS = ("md", "html", "docx")
