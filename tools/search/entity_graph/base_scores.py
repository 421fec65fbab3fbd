"""Base scores of passages without edges: their match by keywords, vectors and names."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sleuth.tools.search.entity_graph.edges import match_aliases
from sleuth.tools.search.entity_graph.index import RARE, GraphIndex
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.retriever import Scored
from sleuth.tools.text import find_phrases, name_key, number_mentions

Meaning = Callable[[str, int], Scored]

DEPTH = 300
"""Number of passages fetched by keywords and by vectors."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """Weights of the signals, relative to the best BM25 score.

    meaning: relative to the best cosine; title: bonus of a passage named by the question;
    entities: bonus of a passage that mentions a known name; edges: factor for all edges; coverage: bonus of a passage
    with all of the question's terms.
    """

    meaning: float = 1.0
    title: float = 1.0
    entities: float = 0.5
    edges: float = 1.0
    coverage: float = 0.0


QUESTION = Weights()
"""For a question whose answer may take several passages."""
HOP = Weights(meaning=0.5, title=0.5, entities=0.5, edges=0.2, coverage=0.5)
"""For a step that one passage should answer, tuned on MuSiQue's sub-questions (`docs/benchmarks/retrieval.md`)."""


@dataclass(kw_only=True, slots=True)
class BaseScores:
    """Components of a passage's own score.

    words: BM25 relative to the best passage;
    meaning: cosine scaled between the last and the best passage fetched; both 0 if it was not found this way. title:
    certainty that the question, or a known name, names the passage.
    entities: 1 if it mentions a known name.
    s0: their weighted sum, relative to the best passage.
    """

    words: float = 0.0
    meaning: float = 0.0
    title: float = 0.0
    entities: float = 0.0
    words_rank: int | None = None
    s0: float = 0.0

    def parts(self) -> dict[str, float]:
        """Return the components by their names in explanations."""
        return {"words": self.words, "meaning": self.meaning, "title": self.title, "entities": self.entities}


def find_base_scores(
    text: str,
    entities: Sequence[str],
    *,
    index: GraphIndex,
    keywords: KeywordIndex,
    meaning: Meaning | None,
    weights: Weights = QUESTION,
) -> dict[str, BaseScores]:
    """Return base scores of all passages found by a question and the known names."""
    words = keywords.search(text, DEPTH)
    base = {id_: BaseScores(words=score / words[0][1], words_rank=rank) for rank, (id_, score) in enumerate(words, 1)}
    if meaning is not None:
        _add_meaning(base, meaning(text, DEPTH))
    _add_titles(base, [text, *entities], index)
    _add_mentions(base, entities, index)
    for each in base.values():
        own = each.words + weights.meaning * each.meaning
        each.s0 = own + weights.title * each.title + weights.entities * each.entities
    most = max((each.s0 for each in base.values()), default=0.0)
    for each in base.values():
        each.s0 = each.s0 / most if most else 0.0
    return base


def _add_meaning(base: dict[str, BaseScores], found: Scored) -> None:
    for id_, cosine in found:
        low, high = found[-1][1], found[0][1]
        base.setdefault(id_, BaseScores()).meaning = (cosine - low) / (high - low) if high > low else 1.0


def _add_titles(base: dict[str, BaseScores], texts: Iterable[str], index: GraphIndex) -> None:
    """Add alias weight / √(passages with the alias), for the longest names in the texts."""
    every = [number_mentions(find_phrases(text)) for text in texts]
    known = index.known_as({mention.name for mentions in every for mention in mentions})
    for mentions in every:
        for mention, aliases in match_aliases(known, mentions):
            for alias in aliases:
                each = base.setdefault(alias.passage, BaseScores())
                each.title = max(each.title, mention.sure * alias.weight / math.sqrt(alias.sharing))


def _add_mentions(base: dict[str, BaseScores], entities: Sequence[str], index: GraphIndex) -> None:
    names = [name for entity in entities if (name := name_key(entity))]
    few = index.mentioning(names, at_most=RARE)
    many = index.mentioning_among([name for name in names if name not in few], list(base))
    for ids in (few | many).values():
        for id_ in ids:
            base.setdefault(id_, BaseScores()).entities = 1.0
