"""Model and cases for tests of RetroRAG: yes and no with their probabilities, and a detective for a chain."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scenes import Case, Chain, Shelf, passage
from scripted_model import Replying

from sleuth.agents.model import Reply, Request
from sleuth.graphs.methods.retro_rag import graph as retro_rag
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.types import Passage


@dataclass
class FailingOnce(Replying):
    """A model that is down at one call; it records the calls that it completes and those in flight at the failure."""

    fails_at: int = 0
    completed: list[str] = field(default_factory=list)
    in_flight: set[str] = field(default_factory=set)
    cut_off: set[str] = field(default_factory=set)

    async def call(self, request: Request) -> Reply:
        if len(self.requests) + 1 == self.fails_at:
            self.fails_at, self.cut_off = 0, set(self.in_flight)
            raise ModelUnavailable("down")
        self.in_flight.add(request.call_id)
        said = await super().call(request)
        self.in_flight.discard(request.call_id)
        self.completed.append(request.call_id)
        return said


@dataclass
class Detective:
    """Plays RetroRAG's roles for a chain without mistakes, from what it is shown."""

    chain: Chain
    scores: Mapping[str, float] = field(default_factory=dict)
    """The score of texts that contain a word; by default 0.9 for passages and inferences of the chain, else 0.1."""

    def reply_to(self, request: Request) -> Any:
        """Return the reply to a request."""
        replies: dict[str, Callable[[dict[str, Any]], Any]] = {
            "reasoner/reason": self._reasoned,
            "reasoner/reason_with_examples": self._reasoned,
            "reasoner/monitor": lambda given: {"answer": self._reasoned(given)["answer"]},
            "reasoner/recall": lambda _: {"reason": "I remember.", "answer": self.chain.answer},
            "reasoner/guess": lambda _: {"answer": self.chain.answer},
            "detective/entities": lambda _: {"entities": ["the case"]},
            "detective/infer": lambda given: {"inferences": self._inferred(given["sources"])},
            "detective/infer_all": lambda given: {"inferences": self._inferred(given["sources"])},
            "detective/requery": lambda given: {"query": self._missing(given)},
            "evaluator/declarative": lambda given: 0.1 if given["answer"] == "unknown" else 0.9,
            "evaluator/consistency": lambda given: 0.9 if given["answer"] == given["second"] else 0.2,
            "evaluator/evidence": lambda given: self._helpful(given["sources"][0]["text"]),
            "evaluator/relevance": lambda _: 0.8,
            "evaluator/attribution": lambda given: (
                0.9 if any(given["claim"] in source["text"] for source in given["sources"]) else 0.05
            ),
        }
        return replies[request.prompt](request.input)

    def claim(self, at: int) -> str:
        """Return the content of a hop's passage as an inference."""
        hop = self.chain.hops[at]
        return f"Of {hop.asked.rstrip('?')} this is known: {hop.answer}"

    def _known(self, given: Mapping[str, Any]) -> list[bool]:
        """Return which hops the shown texts answer; an inherited note answers in its own words."""
        texts = [source["text"] for source in given["sources"]] + [step["answer"] for step in given["known"]]
        noted = [text for step in given["known"] for text in (step["question"], step["answer"])]
        claims = [self.claim(at) for at in range(len(self.chain.hops))]
        if {self.chain.question, self.chain.answer} <= set(noted):
            return [True] * len(claims)
        return [
            bool(hop.answer) and (hop.asked in noted or hop.answer in noted or any(claim in text for text in texts))
            for claim, hop in zip(claims, self.chain.hops, strict=True)
        ]

    def _reasoned(self, given: Mapping[str, Any]) -> dict[str, Any]:
        known = self._known(given)
        quotes = [
            {"source": at, "quote": f"this is known: {hop.answer}"}
            for at, source in enumerate(given["sources"], start=1)
            for hop in self.chain.hops
            if hop.answer and source["text"] == hop.passage.text
        ]
        answer = self.chain.answer if all(known) else ""
        return {"reason": f"{sum(known)} known", "citations": quotes if answer else [], "answer": answer}

    def _inferred(self, sources: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [
            {
                "question": hop.asked,
                "claim": self.claim(at),
                "citations": [{"source": place, "quote": self.claim(at)}],
            }
            for place, source in enumerate(sources, start=1)
            for at, hop in enumerate(self.chain.hops)
            if hop.answer and self.claim(at) in source["text"]
        ]

    def _missing(self, given: Mapping[str, Any]) -> str:
        known = self._known(given)
        return self.chain.hops[known.index(False)].asked if False in known else self.chain.question

    def _helpful(self, text: str) -> float:
        own = [score for word, score in self.scores.items() if word in text]
        ours = any(text == hop.passage.text for hop in self.chain.hops) or "this is known" in text
        return own[0] if own else 0.9 if ours else 0.1


NOISE = [passage(f"noise-{at}", f"Something else, number {at}, is told here.") for at in range(3)]


def shelf(chain: Chain, *more: Passage) -> Shelf:
    """Return a shelf where the question finds the first hop only, each hop its passage, and all some noise."""
    noise = [*more, *NOISE]
    found = {hop.asked: [hop.passage, *noise[:2]] for hop in chain.hops}
    return Shelf([chain.hops[0].passage, *noise], found)


def retro(
    chain: Chain, settings: retro_rag.Settings | None = None, *, model: Replying | None = None, **more: Any
) -> Case:
    """Return a case of RetroRAG over a chain, with its detective."""
    detective = model or Replying(Detective(chain).reply_to)
    return Case(retro_rag.graph, detective, shelf(chain), settings or retro_rag.Settings(), **more)
