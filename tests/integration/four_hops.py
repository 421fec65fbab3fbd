"""A model server that answers by the request alone, so that a killed run meets the same replies again.

It drives PAR-RAG through all that it can do: two steps side by side, a reply that has to be repaired, a review that
asks anew, one that reopens an earlier step, one that revises, and a step that follows without search.
"""

import asyncio
import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from recording_proxy import CHAT, Said, completion

from sleuth.agents.model import Message, Reply, Request
from sleuth.agents.scripted import reply
from sleuth.tools.documents import Hit, Passage
from sleuth.tools.retriever import Query

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


@dataclass(frozen=True)
class FourHops:
    """The backend; every reply takes 20 to 80 ms and `slower` seconds, so that replies to gathered calls cross."""

    slower: float = 0.0

    async def say(self, method: str, path: str, body: bytes) -> Said:
        if path != CHAT:
            known = {"/v1/models": {"data": [{"id": "scripted"}]}, "/tokenize": {"count": 1000}}
            return Said(200, json.dumps(known.get(path, {})).encode())
        asked = json.loads(body)
        await asyncio.sleep(self.slower + 0.02 + sha256(body).digest()[0] / 255 * 0.06)
        return completion(_reply(asked))


def _reply(asked: dict[str, Any]) -> str:
    if "response_format" not in asked:
        return "amber"  # a probe for choices, or for plain text
    prompt, *more = [message["content"] for message in asked["messages"] if message["role"] != "system"]
    lines = [line for line in prompt.splitlines() if line.startswith(("Question: ", "Question to rewrite: "))]
    question = lines[-1].split(": ", 1)[1] if lines else ""
    return reply_text(asked["response_format"]["json_schema"]["name"], question, repair=bool(more))


def reply_text(role: str, question: str, *, repair: bool) -> str:
    """What is said in a role to a question; one first draft is broken off."""
    if role == "drafter_draft" and question == REPAIRED and not repair:
        return '{"answer": "broken'
    return json.dumps(_by_role(role, question))


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


class InProcess:
    """The same replies without a server; the `hold_at`-th call gets none, so that its run stays where it is."""

    context_window = 8192

    def __init__(self, hold_at: int | None = None) -> None:
        self.requests: list[Request] = []
        self.holding = asyncio.Event()
        self._hold_at = hold_at

    async def call(self, request: Request) -> Reply:
        self.requests.append(request)
        if len(self.requests) == self._hold_at:
            self.holding.set()
            await asyncio.Event().wait()
        repair = len(request.messages) > 2
        text = reply_text(request.prompt.replace("/", "_"), request.input["question"], repair=repair)
        return reply(text, prompt_tokens=100)

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        return 1000


class Shelf:
    """A retriever that finds passages made for the query, so that each step has evidence of its own."""

    async def search(self, query: Query) -> list[Hit]:
        return [_hit(query.text, rank) for rank in range(1, 4)]


def _hit(text: str, rank: int) -> Hit:
    body = f"Passage {rank} of the article about: {text}"
    id = sha256(body.encode()).hexdigest()[:12]
    return Hit(
        passage=Passage(id=id, document_id=id, title=text, text=body, start=0, end=len(body)), score=1, rank=rank
    )
