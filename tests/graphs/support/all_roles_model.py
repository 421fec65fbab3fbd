"""A model that plays every role of every method for a chain, and asks only for unknown hops."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hashing_embedder import HashingEmbedder
from retro_scenes import Detective
from scenes import Case, Chain, Hop, Json, Shelf, sure
from scripted_model import Replying

from sleuth.agents.model import Reply, Request
from sleuth.graphs.core.context import MethodSettings
from sleuth.graphs.registry import METHODS


class AllRolesModel:
    """Answers a hop only if its answer is shown: among the sources, or as a known step."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._detective = Detective(chain)

    def reply_to(self, request: Request) -> Any:
        """Return the reply to a request."""
        replies: dict[str, Callable[[Json], Any]] = {
            "planner": lambda given: self._plan(request.prompt, given),
            "expander": self._expanded,
            "fuser": lambda given: {"step": given["steps"][0]},
            "aggregator": lambda given: {
                "knowledge": self._found(given["step"], given),
                "citations": self._quotes(given),
            },
            "verifier": self._verified,
            "integrator": self._integrated,
            "extractor": self._extracted,
            "refiner": lambda given: {"question": self._named(given["question"])},
            "reviewer": lambda _: {"status": "PASS"},
            "classifier": lambda _: "open" if request.prompt == "classifier/domain" else "static",
            "recaller": lambda _: {"known": False},
            "querier": lambda _: {"entities": []},
            "calculator": lambda _: {"expression": ""},
            "resolver": self._resolved,
            "actor": lambda given: self._acted(given, "search" if request.prompt == "actor/act" else "semantic"),
            "searcher": self._continued,
            "drafter": self._drafted,
            **dict.fromkeys(("reader", "answerer"), self._answered),
        }
        if request.prompt == "reasoner/think":
            return self._thought(request.input)
        reply = replies.get(request.role)
        return reply(request.input) if reply else self._detective.reply_to(request)

    def _expanded(self, given: Json) -> Json:
        if "steps" not in given:
            return {"question": self._named(given["question"])}
        missing = self._missing(given["known"], without=given["steps"])
        leads_on = len(missing) > 1 or bool(missing and missing[0].answer != self.chain.answer)
        return {"step": missing[0].asked if missing else self.chain.question, "final": not leads_on}

    def _verified(self, given: Json) -> Reply:
        found = self._found(given["question"], given)
        return sure(found or "who knows", 1.2 if found else 40.0)

    def _named(self, planned: str) -> str:
        return next((hop.asked for hop in self.chain.hops if hop.planned == planned), planned)

    def _plan(self, prompt: str, given: Json) -> Any:
        missing = self._missing(given.get("known", ()), *self._facts(given))
        if prompt == "planner/begin":
            return "[SUBQ]"
        if prompt == "planner/follow_up":
            if missing:
                return {"follow_up": "Yes", "question": missing[0].asked}
            return {"follow_up": "No", "answer": self.chain.answer}
        if prompt.startswith("planner/next"):
            asked = given["queries"][-1]["text"] if given["queries"] else ""
            said = {"finding": self._hop_found(asked), "facts": list(range(1, 1 + len(given["sources"])))}
            return (
                {**said, "plan": "[SUBQ]", "query": missing[0].asked} if missing else {**said, "plan": "[SUFFICIENT]"}
            )
        if not missing:
            return [{"question": self.chain.question, "action": "Answer", "needs": []}]
        first = self.chain.hops.index(missing[0])
        return [
            {
                "question": hop.planned if at else hop.asked,
                "needs": [need - first for need in hop.needs if need > first],
            }
            for at, hop in enumerate(self.chain.hops[first:])
        ]

    def _acted(self, given: Json, tool: str) -> Json:
        missing = self._missing(given["known"], *self._sources(given))
        asked = [search.removeprefix("semantic: ") for search in given["searches"]]
        if missing and missing[0].asked not in asked:
            return {"action": tool, "query": missing[0].asked}
        found = self._found(given["question"], given)
        return {"action": "answer", "answer": found, "citations": self._quotes(given) if found else []}

    def _continued(self, given: Json) -> str:
        """Return what a search-trained model writes: the answers it knows, then its next query or its answer."""
        missing = self._missing(given["known"], *self._sources(given))
        told = " ".join(hop.answer for hop in self.chain.hops if hop not in missing)
        if missing and missing[0].asked not in given["searches"]:
            return f"<think>{told}</think>\n<search>{missing[0].asked}</search>"
        return f"<think>{told}</think>\n<answer>{self._found(given['question'], given)}</answer>"

    def _thought(self, given: Json) -> str:
        """Return the next hop that the sources answer; then the final answer, or the open question."""
        missing = self._missing(given["known"], *self._sources(given))
        known = [hop for hop in self.chain.hops if hop not in missing]
        said = [f"Asked {hop.asked.rstrip('?')} the sources say {hop.answer}." for hop in known]
        left = [thought for thought in said if thought not in given["thoughts"]]
        return next(iter([*left, *(hop.asked for hop in missing)]), f"So the answer is: {self.chain.answer}.")

    def _facts(self, given: Json) -> Iterable[str]:
        yield from (source["text"] for source in given.get("sources", ()))
        yield from (query["finding"] for query in given.get("queries", ()))

    def _hop_found(self, asked: str) -> str:
        return next((hop.answer for hop in self.chain.hops if hop.asked == asked), "")

    def _missing(self, known: Iterable[Mapping[str, str]], *more: str, without: Iterable[str] = ()) -> list[Hop]:
        """Return the hops that no given text answers."""
        steps = list(known)
        if any(step["question"] == self.chain.question and step["answer"] == self.chain.answer for step in steps):
            return []
        told = " ".join([*(step["answer"] for step in steps), *more])
        missing = [hop for hop in self.chain.hops if not (hop.answer and hop.answer in told)]
        return [hop for hop in missing if hop.asked not in without]

    def _found(self, asked: str, given: Json) -> str:
        """Return the answer to a hop, or to the question if all hops are answered."""
        hop = next((hop for hop in self.chain.hops if hop.asked == asked), None)
        if hop and any(hop.answer in text for text in self._texts(given)):
            return hop.answer
        whole = asked == self.chain.question and not self._missing(self._known(given), *self._sources(given))
        return self.chain.answer if whole else ""

    def _known(self, given: Json) -> tuple[Mapping[str, str], ...]:
        own = [{"question": source["title"], "answer": source["text"]} for source in given.get("sources", ())]
        return (*given.get("known", ()), *given.get("trajectory", ()), *own)

    def _sources(self, given: Json) -> list[str]:
        return [source["text"] for source in given.get("sources", ())]

    def _texts(self, given: Json) -> list[str]:
        return [*self._sources(given), *(step["answer"] for step in self._known(given))]

    def _quotes(self, given: Json) -> list[Json]:
        return [
            {"source": at, "quote": f"this is known: {hop.answer}"}
            for at, source in enumerate(given["sources"], start=1)
            for hop in self.chain.hops
            if source["text"] == hop.passage.text
        ]

    def _integrated(self, given: Json) -> Json:
        if "answers" in given:
            return {"answer": given["answers"][0]["answer"]}
        return {"answer": self._found(given["step"] if "step" in given else given["question"], given)}

    def _extracted(self, given: Json) -> Any:
        return {"names": [given["text"]]} if "text" in given else self._triples(given["sources"][0]["text"])

    def _triples(self, text: str) -> list[Json]:
        hops = [hop for hop in self.chain.hops if hop.passage.text == text]
        return [{"subject": hop.asked.rstrip("?"), "predicate": "is", "object": hop.answer} for hop in hops]

    def _resolved(self, given: Json) -> Json:
        found = self._found(given["question"], given)
        return {"answer": found or "I don't know", "citations": self._quotes(given) if found else []}

    def _drafted(self, given: Json) -> Json:
        said = self._answered(given)  # cites words without the answer, so that it is reviewed
        return {**said, "citations": [{**cited, "quote": "More follows"} for cited in said["citations"]]}

    def _answered(self, given: Json) -> Json:
        found = self._found(given["question"], given)
        quotes = self._quotes(given) if found and "sources" in given and "queries" not in given else []
        known = bool(found) or ("queries" in given and not self._missing(given["known"], *self._facts(given)))
        facts = list(range(1, 1 + len(given["sources"]))) if "queries" in given else []
        answer = found or (self.chain.answer if known else "")
        return {"answerable": known, "known": known, "answer": answer, "citations": quotes, "facts": facts}


ALONE = [name for name, method in METHODS.items() if method.needs_model and not method.delegates]
"""The methods that ask a model and no other method."""
AT_ONCE = ("plain-rag", "hybrid-rag", "iter-retgen")
"""Methods that search for the whole question, not for each step."""


def finds(chain: Chain, *, at_once: bool = False) -> Shelf:
    """Return a shelf where the question finds the first hop's passage, or all `at_once`, and each hop its own."""
    found = {hop.asked: [hop.passage] for hop in chain.hops}
    drafted = {f"{hop.asked} {hop.answer}": [hop.passage] for hop in chain.hops}
    return Shelf(chain.passages if at_once else [chain.hops[0].passage], found={**found, **drafted})


def case_of(
    name: str, chain: Chain, settings: MethodSettings | None = None, *, model: Replying | None = None, **more: Any
) -> Case:
    """Return a case of a method over a chain, by default with a model that makes no mistake."""
    method, shelf = METHODS[name], finds(chain, at_once=name in AT_ONCE)
    model = model or Replying(AllRolesModel(chain).reply_to)
    return Case(method.graph, model, shelf, settings or method.settings(), embedder=HashingEmbedder(), **more)
