"""Features of the ranker, defined once for training and for search.

Every feature is a number that relates a question to a pool of candidates; none is a word, name or id, so a trained
model transfers to other collections. Shares are of the question's words, weighted by idf.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.search.entity_graph import Candidate, Kind, Link, QueryTerms
from sleuth.tools.search.ranking.pool import Pool, title_of

VERSION = 1
"""Raised whenever a feature comes, goes, or is computed differently; then the model is trained again."""

Row = Mapping[str, float]

_KINDS: tuple[Kind, ...] = get_args(Kind)
_LINK = ("gain", "w", "r", "nc", "s0", "links", "gains", "union", "seed", "asks", "rest", "sentence", "later")
_NO_LINK = dict.fromkeys(_LINK, 0.0)


def matrix(asked: QueryTerms, candidates: Sequence[Candidate]) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Return one row per candidate, and the names of the columns."""
    rows = list(features(asked, candidates))
    names = tuple(rows[0]) if rows else ()
    return np.array([list(row.values()) for row in rows], dtype=np.float32), names


def features(asked: QueryTerms, candidates: Sequence[Candidate]) -> Iterator[Row]:
    """Yield the features of each candidate, in their order."""
    pool = Pool(asked, candidates)
    for candidate in candidates:
        row = _alone(pool, candidate) | _in_pool(pool, candidate)
        for kind in _KINDS:
            links = [link for link in candidate.links if link.edge.kind == kind]
            linked = _linked(pool, candidate, links) if links else _NO_LINK
            row |= {f"{kind}_{name}": value for name, value in linked.items()}
        yield row | pool.question


def _alone(pool: Pool, candidate: Candidate) -> dict[str, float]:
    """Return features of the passage's own match with the question."""
    base, found, share = candidate.base, pool.found[candidate.passage.id], pool.words.share
    sentences = list(found.sentences.values()) or [found.title]
    return {
        "words": base.words,
        "words_rank": 1 / base.words_rank if base.words_rank else 0.0,
        "title": base.title,
        "entities": base.entities,
        "s0": base.s0,
        "all": share(found.all),
        "best_with_title": max(share(each | found.title) for each in sentences),
        "best_sentence": max(map(share, sentences)),
        "first_sentence": share(sentences[0]),
        "in_title": share(found.title),
        "of_title": found.title.bit_count() / max(1, len(candidate.passage.title.split())),
        "asked": share(found.all & pool.asks) / pool.whole,
        "asked_sentence": max(share(each & pool.asks) for each in sentences) / pool.whole,
        "place": pool.words.place(found.all & ~found.title),
        "length": math.log1p(len(candidate.passage.text)),
        "sentences": len(sentences),
    }


def _in_pool(pool: Pool, candidate: Candidate) -> dict[str, float]:
    """Return features of the passage relative to the other candidates."""
    id_ = candidate.passage.id
    ways = pool.ways[id_]
    return {
        "formula": pool.scores[id_],
        "formula_rank": 1 / (1 + pool.rank[id_]),
        "seed": pool.seeds.get(id_, len(pool.seeds)),
        "named_in_pool": ways.inwards,
        "names_in_pool": ways.outwards,
        "best_named": ways.best,
        "namesakes": pool.namesakes[title_of(candidate)],
        "better_namesakes": pool.better[id_],
        "links": len(candidate.links),
        "sources": len({link.edge.source for link in candidate.links}),
    }


def _linked(pool: Pool, candidate: Candidate, links: Sequence[Link]) -> dict[str, float]:
    """Return features of the best edge of one kind, and the combined coverage of the edge's two ends."""
    best, share = links[0], pool.words.share
    edge, target, source = best.edge, pool.found[candidate.passage.id], pool.found[best.edge.source]
    sentence = pool.found[edge.stands_in].sentences.get(edge.start, 0)
    return {
        "gain": best.gain,
        "w": edge.w,
        "r": edge.r,
        "nc": best.nc,
        "s0": edge.s0,
        "links": len(links),
        "gains": sum(link.gain for link in links),
        "union": share(source.all | target.all),
        "seed": pool.seeds[edge.source],
        "asks": share(sentence & pool.asks & ~source.title) / pool.whole,
        "rest": share(target.all & pool.asks & ~sentence) / pool.whole,
        "sentence": max((share(each & ~source.all) for each in target.sentences.values()), default=0.0),
        "later": pool.words.place(target.all & ~source.all) - pool.words.place(sentence),
    }
