"""A report over HTTP: its outline waits for a reply, and it is saved as a file."""

from io import BytesIO
from typing import Any

import httpx
from docx import Document
from serve_scene import LIGHT, QUESTION, Oracle, begin, told, upload

from sleuth.agents.model import Request

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
    assert (again.status_code, "does not wait" in again.text) == (400, True)


FORMATS = ("md", "html", "docx")


async def test_only_a_report_is_saved_as_one(client: httpx.AsyncClient) -> None:
    await upload(client)
    thread = await begin(client)
    await told(client, thread)
    refused = await client.get(f"/v1/runs/{thread}/report")
    assert (refused.status_code, "no report" in refused.text) == (400, True)
    wrong = {"question": "?", "method": "report", "values": {"sections": [{}]}}
    assert (await client.post("/v1/runs", json=wrong)).status_code == 400
