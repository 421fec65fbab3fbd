"""A model that has several reasoning paths to an answer."""

from collections import Counter
from typing import Any

from scenes import Chain, sure

from sleuth.agents.model import Request

Way = list[tuple[str, str]]
"""Steps with their findings; "" is unknown."""


class PathsModel:
    """Samples next steps from the matching paths in turn; known findings have low perplexity."""

    def __init__(self, *ways: Way) -> None:
        self._ways = ways
        self._known = {step: found for way in ways for step, found in way}
        self._asked: Counter[tuple[str, ...]] = Counter()

    def __call__(self, request: Request) -> Any:
        given = request.input
        match request.role:
            case "expander" if request.prompt == "expander/rewrite":
                return {"question": f"{given['question']} (said otherwise)"}
            case "expander":
                return self._next(given["steps"])
            case "aggregator":
                return self._gather(given["step"], given["sources"])
            case "verifier":
                found = self._known.get(given["question"], "")
                return sure(found or "who knows", 1.5 if found else 40.0)
            case "integrator":
                return {"answer": self._reason(given)}
        return {"step": " / ".join(sorted(given["steps"]))}  # samples come in any order

    def _next(self, steps: tuple[str, ...]) -> Any:
        leading = [way for way in self._ways if tuple(step for step, _ in way)[: len(steps)] == steps]
        way = leading[self._asked[steps] % len(leading)]
        self._asked[steps] += 1
        return {"step": way[len(steps)][0], "final": len(steps) + 1 == len(way)}

    def _gather(self, step: str, sources: tuple[dict[str, str], ...]) -> Any:
        found = self._known.get(step) or "not told"
        at = next((number for number, source in enumerate(sources, start=1) if found in source["text"]), 0)
        quotes = [{"source": at, "quote": f"this is known: {found}"}] if at else []
        return {"knowledge": f"It is {found}.", "citations": quotes}

    def _reason(self, given: dict[str, Any]) -> str:
        if "answers" in given:
            return " or ".join(dict.fromkeys(each["answer"] for each in given["answers"]))
        step = given["step"] if "step" in given else given["steps"][-1]
        return self._known.get(step, "")


def way(chain: Chain) -> Way:
    """Return a chain's hops as a path; a question with a false premise follows what the documents contain instead."""
    hops = [(hop.asked, hop.answer) for hop in chain.hops]
    return hops if hops[-1][1] == chain.answer else [*hops, (chain.question, chain.answer)]
