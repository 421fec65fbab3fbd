"""CRAG's score, refusals, citations and recall, worked out by hand from their definitions."""

from collections.abc import Sequence
from fractions import Fraction

import pytest

from sleuth.studio.evaluation.scoring import metrics
from sleuth.studio.evaluation.scoring.retrieval import recall
from sleuth.tools.types import Hit, Passage

INVALID = "invalid question"

# Status, answer, gold answers and judgement of a run; its CRAG score, and whether it was refused.
ENDED: list[tuple[str, str, list[str], bool | None, float, float]] = [
    # right
    ("answered", "cat", ["cat"], None, 1, 0),
    ("answered", "The cat.", ["cat"], None, 1, 0),
    ("answered", "JFK", ["John F. Kennedy", "JFK"], None, 1, 0),
    ("answered", "yes", ["Yes"], None, 1, 0),
    ("answered", "1,907", ["1907"], None, 1, 0),
    ("answered", "ZÜRICH", ["Zürich"], None, 1, 0),
    ("out_of_budget", "cat", ["cat"], None, 1, 0),
    # wrong: half of it is wrong, too
    ("answered", "dog", ["cat"], None, -1, 0),
    ("answered", "a black cat", ["cat"], None, -1, 0),
    ("answered", "Kennedy", ["John F. Kennedy", "JFK"], None, -1, 0),
    ("answered", "no", ["yes"], None, -1, 0),
    ("answered", "1908", ["1907"], None, -1, 0),
    ("answered", "Zurich", ["Zürich"], None, -1, 0),
    ("answered", "", ["cat"], None, -1, 0),
    ("out_of_budget", "dog", ["cat"], None, -1, 0),
    ("failed", "", ["cat"], None, -1, 0),
    # an answer where there is none
    ("answered", "cat", [""], None, -1, 0),
    ("answered", "the", [""], None, 1, 0),
    # refused: its text is no answer
    ("refused", "", ["cat"], None, 0, 1),
    ("refused", "cat", ["cat"], None, 0, 1),
    ("unknown", "", ["cat"], None, 0, 1),
    ("unknown", "What is missing: the cat", ["cat"], None, 0, 1),
    ("invalid_question", "", ["cat"], None, 0, 1),
    # rightly refused
    ("refused", "", [""], None, 1, 1),
    ("unknown", "I cannot say", [""], None, 1, 1),
    ("invalid_question", "cat", [""], None, 1, 1),
    # a false premise: naming it is right
    ("invalid_question", "", ["he never won", INVALID], None, 1, 1),
    ("answered", "he never won", ["he never won", INVALID], None, 1, 0),
    ("answered", "Invalid question.", ["he never won", INVALID], None, 1, 0),
    ("unknown", "", ["he never won", INVALID], None, 0, 1),
    ("answered", "twice", ["he never won", INVALID], None, -1, 0),
    # a judge may accept a paraphrase, but does not reject an exact match
    ("answered", "a feline", ["cat"], True, 1, 0),
    ("answered", "a feline", ["cat"], False, -1, 0),
    ("answered", "cat", ["cat"], False, 1, 0),
    ("refused", "", ["cat"], False, 0, 1),
]

# The ids of each cited passage, the gold: support, precision and recall.
CITED: list[tuple[list[str], list[str], float, float | Fraction | None, float | Fraction]] = [
    # by passage
    (["a#1"], ["a#1"], 1, 1, 1),
    (["a#1"], ["b#1"], 0, 0, 0),
    (["a#1"], ["a#2"], 0, 0, 0),
    (["a#1", "b#1"], ["a#1", "b#1"], 1, 1, 1),
    (["b#1", "a#1"], ["a#1", "b#1"], 1, 1, 1),
    (["a#1"], ["a#1", "b#1"], 1, 1, 0.5),
    (["a#1", "b#1"], ["a#1"], 1, 0.5, 1),
    (["a#1", "c#1"], ["a#1", "b#1"], 1, 0.5, 0.5),
    (["a#1", "c#1", "d#1"], ["a#1"], 1, Fraction(1, 3), 1),
    (["a#1", "b#1", "d#1"], ["a#1", "b#1", "c#1"], 1, Fraction(2, 3), Fraction(2, 3)),
    (["c#1", "d#1"], ["a#1", "b#1"], 0, 0, 0),
    (["a#1"], ["a#1", "b#1", "c#1", "d#1"], 1, 1, 0.25),
    # by document: any of its passages counts, each for precision, all together once for recall
    (["a#1"], ["a"], 1, 1, 1),
    (["a#7"], ["a"], 1, 1, 1),
    (["a#1", "a#2"], ["a"], 1, 1, 1),
    (["a#1", "a#2"], ["a", "b"], 1, 1, 0.5),
    (["a#1", "a#2", "b#1"], ["a"], 1, Fraction(2, 3), 1),
    (["a#1", "b#1"], ["a", "b"], 1, 1, 1),
    (["c#1"], ["a", "b"], 0, 0, 0),
    # by both
    (["a#1"], ["a", "a#1"], 1, 1, 1),
    (["a#2"], ["a", "a#1"], 1, 1, 0.5),
    (["a#1", "b#2"], ["a#1", "b"], 1, 1, 1),
    (["a#1", "b#2"], ["a#1", "b#1"], 1, 0.5, 0.5),
    # gold named twice is one passage
    (["a#1"], ["a#1", "a#1"], 1, 1, 1),
    (["a#1"], ["a#1", "a#1", "b#1"], 1, 1, 0.5),
    (["b#1"], ["a#1", "a#1"], 0, 0, 0),
    # nothing cited: no precision
    ([], ["a"], 0, None, 0),
    ([], ["a", "b"], 0, None, 0),
    # ids are compared literally
    (["A#1"], ["a"], 0, 0, 0),
    (["zürich#1"], ["zürich"], 1, 1, 1),
    (["zürich#1"], ["zurich"], 0, 0, 0),
    (["10#1"], ["1"], 0, 0, 0),
]

# What was found, best first, the gold: recall at 2, 5 and 20, and whether all of it is among the first five.
FOUND: list[tuple[str, list[str], float | Fraction, float | Fraction, float | Fraction, float]] = [
    # one to find
    ("a", ["a"], 1, 1, 1, 1),
    ("b", ["a"], 0, 0, 0, 0),
    ("x a", ["a"], 1, 1, 1, 1),
    ("x y a", ["a"], 0, 1, 1, 1),
    ("x y z w a", ["a"], 0, 1, 1, 1),
    ("x y z w v a", ["a"], 0, 0, 1, 0),
    ("b c d e f g h i j k l m n o p q r s t a", ["a"], 0, 0, 1, 0),
    ("b c d e f g h i j k l m n o p q r s t u a", ["a"], 0, 0, 0, 0),
    # two
    ("a b", ["a", "b"], 1, 1, 1, 1),
    ("b a", ["a", "b"], 1, 1, 1, 1),
    ("a x b", ["a", "b"], 0.5, 1, 1, 1),
    ("a x y z b", ["a", "b"], 0.5, 1, 1, 1),
    ("a x y z w b", ["a", "b"], 0.5, 0.5, 1, 0),
    ("x y a b", ["a", "b"], 0, 1, 1, 1),
    ("a x y", ["a", "b"], 0.5, 0.5, 0.5, 0),
    ("x y z", ["a", "b"], 0, 0, 0, 0),
    # three and more
    ("a b c", ["a", "b", "c"], Fraction(2, 3), 1, 1, 1),
    ("a x b y c", ["a", "b", "c"], Fraction(1, 3), 1, 1, 1),
    ("a b x y z c", ["a", "b", "c"], Fraction(2, 3), Fraction(2, 3), 1, 0),
    ("a b c d", ["a", "b", "c", "d"], 0.5, 1, 1, 1),
    ("a b c d e f", ["a", "b", "c", "d", "e", "f"], Fraction(1, 3), Fraction(5, 6), 1, 0),
    # passages of a document: the first of them finds it, the others take their places
    ("a#2", ["a"], 1, 1, 1, 1),
    ("a#1 a#2 a#3 b#1", ["a", "b"], 0.5, 1, 1, 1),
    ("a#1 a#2 a#3 a#4 a#5 b#1", ["a", "b"], 0.5, 0.5, 1, 0),
    ("a#1 b#1", ["a#1"], 1, 1, 1, 1),
    ("a#2 b#1", ["a#1"], 0, 0, 0, 0),
    ("a#2 a#1", ["a", "a#1"], 1, 1, 1, 1),
    # nothing found; literal ids
    ("", ["a"], 0, 0, 0, 0),
    ("", ["a", "b"], 0, 0, 0, 0),
    ("A", ["a"], 0, 0, 0, 0),
    ("Zürich", ["Zürich"], 1, 1, 1, 1),
    ("10 11", ["1"], 0, 0, 0, 0),
]


def names(id: str) -> list[str]:
    """A passage's id and that of its document."""
    return [id, id.partition("#")[0]]


def hits(found: str) -> list[Hit]:
    places = list(enumerate(found.split(), start=1))
    return [Hit(passage=passage(id), score=1 / rank, rank=rank) for rank, id in places]


def passage(id: str) -> Passage:
    return Passage(id=id, document_id=names(id)[1], title=id, text=id, start=0, end=1)


@pytest.mark.parametrize(("status", "text", "answers", "judged", "crag", "refused"), ENDED)
def test_crag_score_and_refusal(
    *, status: str, text: str, answers: list[str], judged: bool | None, crag: float, refused: float
) -> None:
    scores = metrics.answer_scores(status, text, answers, judged)
    assert (scores["crag"], scores["refused"]) == (crag, refused)
    assert (scores["answered_em"] is None) == (scores["answered_f1"] is None) == bool(refused)


@pytest.mark.parametrize(("cited", "gold", "support", "precision", "recalled"), CITED)
def test_citations(
    cited: Sequence[str], gold: list[str], support: float, precision: float | None, recalled: float
) -> None:
    scores = metrics.citation_scores([names(id) for id in cited], gold, answered=True)
    assert scores["support"] == support
    assert scores["citation_precision"] == (None if precision is None else pytest.approx(float(precision)))
    assert scores["citation_recall"] == pytest.approx(float(recalled))


QUOTED: list[tuple[str, list[str], float | None]] = [
    ("1868", ["It was founded in 1868."], 1.0),
    ("1868", ["It was founded in 1886."], 0.0),
    ("1868", ["It was founded.", "That was in 1868"], 1.0),
    ("1868", [], 0.0),
    ("1868", [""], 0.0),
    ("1868", ["18681 of them"], 0.0),
    ("1868", ["from 1868–1870"], 0.0),  # as for EM, marks beyond ASCII join
    ("1868", ["(1868)"], 1.0),
    ("Varn", ["VARN lies on the Oss"], 1.0),
    ("Varn", ["Varnish"], 0.0),
    ("varn", ["in Varn."], 1.0),
    ("the Varn", ["in Varn"], 1.0),
    ("Varn", ["the Varn"], 1.0),
    ("The Skerry Suite", ["a Skerry   Suite"], 1.0),
    ("Skerry Suite", ["Suite of the Skerry"], 0.0),
    ("Skerry Suite", ["Skerry", "Suite"], 0.0),  # no single one contains it
    ("Lena Holt", ["Dr. Lena Holt!"], 1.0),
    ("Lena Holt", ["Lena\nHolt"], 1.0),
    ("Lena Holt", ["Holt, Lena"], 0.0),
    ("Lena Holt", ["Lena B. Holt"], 0.0),
    ("O'Hara", ["by OHara"], 1.0),
    ("30 m", ["It is 30 m high."], 1.0),
    ("30 m", ["It is 30m high."], 0.0),
    ("30 metres", ["It is 30 m high."], 0.0),
    ("six", ["six years", "seven"], 1.0),
    ("six", ["sixty"], 0.0),
    ("Øre", ["the øre"], 1.0),
    ("yes", ["yes"], None),
    ("No.", ["no"], None),
    ("Yes", [], None),
    ("yes, it is", ["yes, it is so"], 1.0),
    ("", ["Varn"], None),
    ("the", ["the"], None),  # nothing is left of it
    ("?", ["?"], None),
]


@pytest.mark.parametrize(("text", "quotes", "share"), QUOTED)
def test_answer_contained_in_a_citation(text: str, quotes: list[str], share: float | None) -> None:
    assert metrics.quoted(text, quotes) == share


@pytest.mark.parametrize(("found", "gold", "at_2", "at_5", "at_20", "every"), FOUND)
def test_recall(*, found: str, gold: list[str], at_2: float, at_5: float, at_20: float, every: float) -> None:
    shares = recall(hits(found), gold)
    assert (shares["recall@2"], shares["recall@5"], shares["recall@20"]) == pytest.approx((at_2, at_5, at_20))
    assert shares["all@5"] == every


def test_citation_scores_need_gold_and_an_answer() -> None:
    assert set(metrics.citation_scores([names("a#1")], [], answered=True).values()) == {None}
    assert set(metrics.citation_scores([], ["a"], answered=False).values()) == {None}


def test_without_right_answers_only_refusals_are_scored() -> None:
    assert metrics.answer_scores("answered", "cat", []) == {"refused": 0}
    assert metrics.answer_scores("unknown", "", []) == {"refused": 1}


def test_enough_cases_were_worked_out() -> None:
    assert min(len(ENDED), len(CITED), len(FOUND)) >= 30
