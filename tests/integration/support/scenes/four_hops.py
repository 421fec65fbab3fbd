"""Replies, over HTTP or in the same process, that drive PAR-RAG through all its nodes.

Two parallel steps, a reply that has to be repaired, a review that asks again, one that reopens an earlier step, one
that revises, and a step that follows without search.
"""

import asyncio
import json
from hashlib import sha256
from typing import Any

from scripted_backend import Asked
from scripted_model import Replying

from sleuth.agents.model import Reply, Request
from sleuth.tools.search.retriever import Query
from sleuth.tools.types import Hit, Passage

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


def four_hops(asked: Asked) -> str:
    """The script of a server."""
    question = asked.after("Question to rewrite: ") or asked.after("Question: ")
    return reply_text(asked.prompt.replace("/", "_"), question, repair=asked.repair)


def reply_text(role: str, question: str, *, repair: bool) -> str:
    """Return the reply of a role to a question; one first draft is truncated."""
    if role == "drafter_draft" and question == REPAIRED and not repair:
        return '{"answer": "broken'
    return json.dumps(_by_role(role, question))


def _by_role(role: str, question: str) -> Any:
    match role:
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


class InProcess(Replying):
    """The same replies without a server; the `hold_at`-th call waits until `free` is set."""

    def __init__(self, hold_at: int | None = None) -> None:
        super().__init__(
            lambda request: reply_text(
                request.prompt.replace("/", "_"), request.input["question"], repair=len(request.messages) > 2
            )
        )
        self.holding, self.free = asyncio.Event(), asyncio.Event()
        self._hold_at = hold_at

    async def call(self, request: Request) -> Reply:
        is_held = len(self.requests) + 1 == self._hold_at
        said = await super().call(request)
        if is_held:
            self.holding.set()
            await self.free.wait()
        return said


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
