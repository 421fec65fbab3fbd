"""Steps of questions that have none of their own, from decompositions in Break's form: a sub-query per gold passage.

HotpotQA names the passages of a question and no steps. Break (Wolfson et al., 2020) has steps of some of its questions,
without passages and answers. A chain of two is mapped where the first passage names the second's title.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from training.questions import Row, TrainingSet, lines
from training.simulation.wording import content_words, find_references, mentions

_BRACKET = re.compile(r"\s*\([^()]*\)$")
_WORD = re.compile(r"\w+")
_SPACED = re.compile(r"\s+(?=[,.]|'s\b)|(?<=\() | (?=\))")
_ASKS = re.compile(r"(?:who|whose|what|which|when|where|how|in|on|at|between|for|is|was|are|did|does)\b", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:the|an?|#\d+)\b", re.IGNORECASE)


class _Line(Row):
    question: str
    decomposition: list[str]


class GoldPassage(NamedTuple):
    """A passage that a question needs."""

    id: str
    title: str
    text: str

    @property
    def name(self) -> str:
        """The title without what distinguishes it from others, as in "Test (wrestler)"."""
        return _BRACKET.sub("", self.title)


def read_decompositions(file: Path) -> dict[str, list[str]]:
    """Return the steps of each question, by its `question_key`.

    Raises:
        UsageError: the file or a line of it cannot be used; names file and line.
    """
    return {question_key(line.question): line.decomposition for line in lines(file, _Line)}


def add_steps(known: TrainingSet, decompositions: Mapping[str, Sequence[str]]) -> None:
    """Set the steps of the questions that have neither steps nor evidence triples, by `question_key`."""
    for row in known.questions:
        if not (row["decomposition"] or row["evidence_triples"]):
            steps = decompositions.get(question_key(row["question"]), ())
            gold = [GoldPassage(id, *known.passages[id]) for id in row["gold_ids"]]
            row["decomposition"] = map_steps(row["question"], row["answer"], steps, gold)


def question_key(question: str) -> str:
    """Return the words of a question: Break has its questions without some marks and spaces."""
    return " ".join(_WORD.findall(question.casefold()))


def map_steps(
    question: str, answer: str, steps: Sequence[str], passages: Sequence[GoldPassage]
) -> list[dict[str, str]]:
    """Return the steps with their answers and passages, in the form of a questions file's `decomposition`.

    The list is empty if they are not a chain of two, each with a passage of its own. The first step's answer is the
    second passage's title, which the first passage names and the question does not.
    """
    if len(steps) != 2 or len(passages) != 2 or find_references(steps[1]) != [1] or steps[1].startswith("#"):
        return []
    ways = [
        (first, second)
        for first, second in permutations(passages)
        if _leads(question, answer, first, second) and _overlap(steps[0], first) > _overlap(steps[0], second)
    ]
    if len(ways) != 1:
        return []
    first, second = ways[0]
    return [
        {"question": as_question(steps[0]), "answer": second.name, "gold_id": first.id},
        {"question": as_question(steps[1]), "answer": answer, "gold_id": second.id},
    ]


def _leads(question: str, answer: str, first: GoldPassage, second: GoldPassage) -> bool:
    named = mentions(first.text, second.name) and not mentions(question, second.name)
    return named and mentions(second.text, answer) and not mentions(second.name, answer)


def _overlap(step: str, passage: GoldPassage) -> int:
    return len(content_words(step) & content_words(f"{passage.title} {passage.text}"))


def as_question(step: str) -> str:
    """Return a step, which Break writes as a noun phrase in separate tokens, as a question."""
    text = _SPACED.sub("", step).strip(" ?")
    if not _ASKS.match(text):
        text = f"What is {'' if _ARTICLE.match(text) else 'the '}{text}"
    return f"{text[0].upper()}{text[1:]}?"
