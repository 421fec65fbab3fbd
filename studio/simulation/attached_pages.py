"""What a question that comes with pages can be known to be: nobody has named the passage that tells its answer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sleuth.studio.simulation.gold import Gold, Hop, Passages, gold_of
from sleuth.studio.simulation.wording import content, names
from sleuth.tools.text import sentences

_PLAIN = frozenset({"yes", "no"})
"""Answers that stand in no page."""

_ENOUGH = 0.5
"""The share of an answer's own words that a sentence must have."""


def gold_on_pages(row: Mapping[str, Any], pages: Passages) -> Gold:
    """A question as one hop, told by the sentence or table row that has most of its answer; derived.

    Words of the question do not count, unless the answer has no others. No hop where nothing has half of them: a
    simulated model then finds no answer in the pages. A false premise is one that a page contradicts.

    Args:
        row: as for `gold_of`; `type` is the benchmark's.
        pages: title and text of each page, tables among it, by id.
    """
    bare = gold_of({**row, "gold_ids": [], "decomposition": []}, {})
    asked = content(bare.question)
    wanted = content(bare.answer) - asked - _PLAIN or asked
    best, page, evidence = max(
        ((_share(unit, wanted, asked), id, unit) for id, (_, text) in pages.items() for unit in sentences(text)),
        default=((0.0, 0), "", ""),
        key=lambda found: found[0],
    )
    if best[0] < _ENOUGH:
        return bare
    title, text = pages[page]
    hop = Hop(
        question=bare.question,
        answer=bare.answer,
        passage=page,
        title=title,
        text=text,
        subject=next(iter(names(bare.question)[-1:]), title),
        predicate="is",
        evidence=evidence,
    )
    answer = "" if bare.type == "false_premise" else bare.answer
    return replace(bare, answer=answer, hops=(hop,), origin="derived")


def _share(unit: str, wanted: frozenset[str], asked: frozenset[str]) -> tuple[float, int]:
    """How much of the answer a sentence has; of equals the one with more of the question."""
    has = content(unit)
    return len(has & wanted) / len(wanted) if wanted else 0.0, len(has & asked)
