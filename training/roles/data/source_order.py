"""Search results in a teaching run: complete, incomplete, or with a passage that lacks the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from sleuth.tools.search import Query, Retriever
from sleuth.tools.text.tokenization import sentences
from sleuth.tools.types import Hit, Passage
from training.questions import TrainingSet, passage_of
from training.simulation import Gold
from training.simulation.wording import mentions

WITHHELD, SILENT, GIVEN = 0.1, 0.12, 0.53
"""Shares of the examples in which one passage that a question needs is not found; is found, but does not contain the
answer; or all are found."""


@dataclass(frozen=True)
class ArrangedRetriever:
    """A retriever that never finds certain passages, and always finds certain others at a random rank.

    A question's passages may be missing from a collection, may lack the answer, or may be ranked among similar ones. A
    given passage has the text that it is given with.
    """

    retriever: Retriever
    withheld: frozenset[str]
    given: Mapping[str, Passage]
    seed: int

    async def search(self, query: Query) -> list[Hit]:
        """Return the best of the rest, of which the last give way to what is given."""
        found = await self.retriever.search(replace(query, k=query.k + len(self.withheld)))
        left = [hit.passage for hit in found if hit.passage.id not in self.withheld][: query.k]
        passages = [self.given.get(passage.id, passage) for passage in left]
        there = {passage.id for passage in passages}
        missing = [passage for id, passage in self.given.items() if id not in there | query.seen]
        others = [passage for passage in passages if passage.id not in self.given]
        gone = {passage.id for passage in others[max(0, len(others) - len(missing)) :]} if missing else set()
        kept = [passage for passage in passages if passage.id not in gone]
        dice = Random(f"{self.seed} {query.text}")  # noqa: S311 - its own: searches are concurrent
        for passage in missing:
            kept.insert(dice.randint(0, len(kept)), passage)
        return [Hit(passage=passage, score=1 / rank, rank=rank) for rank, passage in enumerate(kept, start=1)]


def arrange(
    retriever: Retriever, known: TrainingSet, needed: Sequence[str], gold: Gold, dice: Random
) -> ArrangedRetriever:
    """Search as it is drawn for one play; `needed` are the ids of the passages that its question needs."""
    drawn, chosen, seed = dice.random(), dice.choice(needed), dice.randrange(2**31)
    given = {id: passage_of(id, *known.passages[id]) for id in needed}
    silent = remove_answers(given[chosen], gold) if drawn < SILENT else None
    if silent:
        return ArrangedRetriever(retriever=retriever, withheld=frozenset(), given={**given, chosen: silent}, seed=seed)
    gone = frozenset([chosen] if drawn < SILENT + WITHHELD else [])
    return ArrangedRetriever(retriever=retriever, withheld=gone, given=given if drawn > 1 - GIVEN else {}, seed=seed)


def remove_answers(passage: Passage, gold: Gold) -> Passage | None:
    """Return a passage without the sentences that answer a hop; None if nothing is left, or nothing is removed."""
    answers = [hop.answer for hop in gold.hops if hop.passage == passage.id and hop.answer]
    told = sentences(passage.text)
    left = [unit for unit in told if not any(mentions(unit, answer) for answer in answers)]
    return passage_of(passage.id, passage.title, " ".join(left)) if 0 < len(left) < len(told) else None
