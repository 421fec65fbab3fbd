"""A model server that answers by the request alone, so that a killed run meets the same replies again.

It drives PAR-RAG through all that it can do: two steps side by side, a reply that has to be repaired, a review that
asks anew, one that reopens an earlier step, one that revises, and a step that follows without search.
"""

import asyncio
import json
from hashlib import sha256
from typing import Any

from recording_proxy import CHAT, Said, completion

QUESTION = "Which fair is held in the birthplace of the builder of the Pellowrig Light?"

PLAN = [
    {"question": "Who built the Pellowrig Light?", "needs": []},
    {"question": "How tall is the Pellowrig Light?", "needs": []},
    {"question": "Where was the builder born?", "needs": [1, 2]},
    {"question": "Which fair is held there?", "needs": [3]},
    {"question": "So which fair is it?", "needs": [4], "action": "Answer"},
]

REPAIRED = "How tall is the Pellowrig Light?"
ASKED_ANEW = "How many metres high is the Pellowrig Light?"
DOUBTED = "Where was Edric Gannow born?"
REOPENED = "What is the name of the builder of the Pellowrig Light?"
REVISED = "Which fair is held in Brindlecote?"

REVIEWS = {
    REPAIRED: {"status": "UNCONFIDENT", "question": ASKED_ANEW},
    DOUBTED: {"status": "UNCONFIDENT", "question": REOPENED, "earlier_step": 1},
    REVISED: {"status": "REVISED", "answer": "the fair", "citations": [{"source": 1, "quote": "the"}]},
}


class FourHops:
    """The backend; every reply takes 20 to 80 ms, so that replies to gathered calls cross."""

    async def say(self, method: str, path: str, body: bytes) -> Said:
        if path != CHAT:
            known = {"/v1/models": {"data": [{"id": "scripted"}]}, "/tokenize": {"count": 1000}}
            return Said(200, json.dumps(known.get(path, {})).encode())
        asked = json.loads(body)
        await asyncio.sleep(0.02 + sha256(body).digest()[0] / 255 * 0.06)
        return completion(_reply(asked))


def _reply(asked: dict[str, Any]) -> str:
    if "response_format" not in asked:
        return "amber"  # a probe for choices, or for plain text
    texts = [message["content"] for message in asked["messages"]]
    role, repair = (
        asked["response_format"]["json_schema"]["name"],
        "assistant" in [m["role"] for m in asked["messages"]],
    )
    said = _by_role(role, _question(texts[1] if len(texts) > 1 else texts[0]))
    if role == "drafter_draft" and said["answer"].startswith(REPAIRED) and not repair:
        return '{"answer": "broken'
    return json.dumps(said)


def _by_role(role: str, question: str) -> Any:
    match role:
        case "probe":
            return {"ready": True}
        case "planner_plan":
            return {"steps": PLAN}
        case "refiner_refine":
            return {"question": {PLAN[2]["question"]: DOUBTED, PLAN[3]["question"]: REVISED}.get(question, question)}
        case "reviewer_review":
            return REVIEWS.get(question, {"status": "PASS"})
        case "drafter_draft":
            return {"answer": f"{question} found", "citations": [{"source": 1, "quote": "the"}]}
        case "answerer_answer":
            return {"known": True, "answer": "the fair at Brindlecote"}
    return {"answer": "the fair"}


def _question(prompt: str) -> str:
    lines = [line for line in prompt.splitlines() if line.startswith(("Question: ", "Question to rewrite: "))]
    return lines[-1].split(": ", 1)[1] if lines else ""
