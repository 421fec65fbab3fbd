"""Scores worked out by hand from their definitions (for EM and F1 those of SQuAD 2.0's script)."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from sleuth.graphs.core.answer import Support
from sleuth.studio.evaluation import scoring
from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.studio.evaluation.results import Result
from sleuth.studio.evaluation.retrieval import recall
from sleuth.tools.types import Hit, Passage

INVALID = "invalid question"
THIRD = Fraction(1, 3)

# Reply, accepted answers, exact match. Normalization is tested here, for all metrics that use it.
EXACT: list[tuple[str, list[str], float]] = [
    # articles
    ("A cat", ["the cat"], 1),
    ("theatre", ["the atre"], 0),
    ("Anna", ["na"], 0),
    ("a", ["the"], 1),
    # letter case and white space
    ("  New   York\n", ["new york"], 1),
    ("NewYork", ["New York"], 0),
    # punctuation
    ("U.S.A.", ["USA"], 1),
    ("rock-n-roll", ["rock n roll"], 0),
    ("“Paris”", ["Paris"], 0),
    # yes, no and numbers
    ("yes", ["Yes."], 1),
    ("Yes, it is", ["yes"], 0),
    ("1,907", ["1907"], 1),
    ("1907.0", ["1907"], 0),
    # aliases
    ("812 m", ["812 metres", "812", "812 m"], 1),
    # empty
    ("...", [""], 1),
    ("", ["cat"], 0),
    ("cat", [""], 0),
    # an answer that normalizes to nothing does not count if there is another
    ("", ["A", "blood group A"], 0),
    ("a", ["A", "blood group A"], 0),
    # unicode
    ("ÉCOLE", ["école"], 1),
    ("東京。", ["東京"], 0),
    ("cafe\u0301", ["caf\u00e9"], 0),
]

# Reply, accepted answers, F1: 2 * common words / (words of the reply + words of the answer).
OVERLAP: list[tuple[str, list[str], float]] = [
    ("cat dog", ["dog cat"], 1),
    ("cat", ["dog"], 0),
    ("big black cat", ["black cat"], 4 / 5),
    ("one two three four", ["four five six"], 2 / 7),
    # repeated words count as often as both have them
    ("cat cat", ["cat cat cat"], 4 / 5),
    # HotpotQA's script gives 0 for words next to a yes or a no
    ("Yes, it is", ["yes"], 1 / 2),
    # aliases: the best counts
    ("John Kennedy", ["JFK", "John F. Kennedy"], 4 / 5),
    # empty
    ("", [""], 1),
    ("", ["cat"], 0),
    ("cat", [""], 0),
    ("...", ["cat", ""], 1),
    ("", ["The", "cat"], 0),
    ("", ["The"], 1),
]

# Reply, accepted answers, whether one is contained.
CONTAINED: list[tuple[str, list[str], float]] = [
    ("It was the Quarve Haven.", ["Quarve Haven"], 1),
    # only whole words, in their order, side by side
    ("It was in 19071.", ["1907"], 0),
    ("Bell, Anna", ["Anna Bell"], 0),
    ("Anna Maria Bell", ["Anna Bell"], 0),
    # articles do not count, in any position
    ("cat on mat", ["the cat on the mat"], 1),
    ("Nothing", ["no"], 0),
    # aliases and empty texts
    ("Anna Bell", ["JFK", "bell"], 1),
    ("", ["cat"], 0),
    ("", [""], 1),
    ("cat", [""], 0),
]

# Status, answer, accepted answers and judgement of a run; its CRAG score, and whether it was refused.
ENDED: list[tuple[str, str, list[str], bool | None, float, float]] = [
    ("answered", "The cat.", ["cat"], None, 1, 0),
    ("out_of_budget", "cat", ["cat"], None, 1, 0),
    ("answered", "a black cat", ["cat"], None, -1, 0),
    # the first 50 words count
    ("answered", "cat " * 51, ["cat " * 50], None, 1, 0),
    ("answered", "cat " * 51, ["cat " * 51], None, -1, 0),
    ("answered", "", ["cat"], None, -1, 0),
    # an answer where there is none
    ("answered", "cat", [""], None, -1, 0),
    # the text of a refusal is no answer
    ("unknown", "What is missing: the cat", ["cat"], None, 0, 1),
    ("invalid_question", "", ["cat"], None, 0, 1),
    # refused where there is no answer
    ("refused", "", [""], None, 1, 1),
    ("invalid_question", "cat", [""], None, 1, 1),
    # a false premise
    ("invalid_question", "", ["he never won", INVALID], None, 1, 1),
    ("answered", "Invalid question.", ["he never won", INVALID], None, 1, 0),
    ("unknown", "", ["he never won", INVALID], None, 0, 1),
    ("answered", "twice", ["he never won", INVALID], None, -1, 0),
    # a judge may accept a paraphrase, but does not reject an exact match
    ("answered", "a feline", ["cat"], True, 1, 0),
    ("answered", "a feline", ["cat"], False, -1, 0),
    ("answered", "cat", ["cat"], False, 1, 0),
]

# The cited passages, the gold; support, precision and recall.
CITED: list[tuple[str, list[str], float, float | Fraction | None, float | Fraction]] = [
    # by passage
    ("a#1", ["a#2"], 0, 0, 0),
    ("a#1 c#1 d#1", ["a#1"], 1, THIRD, 1),
    ("a#1 b#1 d#1", ["a#1", "b#1", "c#1"], 1, 2 * THIRD, 2 * THIRD),
    # by document: any of its passages counts, each for precision, all together once for recall
    ("a#1 a#2", ["a", "b"], 1, 1, 0.5),
    ("a#1 a#2 b#1", ["a"], 1, 2 * THIRD, 1),
    ("a#2", ["a", "a#1"], 1, 1, 0.5),
    # gold named twice is one passage; without citations there is no precision; ids are compared literally
    ("a#1", ["a#1", "a#1", "b#1"], 1, 1, 0.5),
    ("", ["a", "b"], 0, None, 0),
    ("A#1", ["a"], 0, 0, 0),
    ("10#1", ["1"], 0, 0, 0),
]

# The passages found, best first, the gold; recall at 2, 5 and 20, and whether all of it is among the first five.
FOUND: list[tuple[str, list[str], float | Fraction, float | Fraction, float | Fraction, float]] = [
    ("x y z w a", ["a"], 0, 1, 1, 1),
    ("x y z w v a", ["a"], 0, 0, 1, 0),
    ("b c d e f g h i j k l m n o p q r s t a", ["a"], 0, 0, 1, 0),
    ("b c d e f g h i j k l m n o p q r s t u a", ["a"], 0, 0, 0, 0),
    ("a x b y c", ["a", "b", "c"], THIRD, 1, 1, 1),
    ("a b c d e f", ["a", "b", "c", "d", "e", "f"], THIRD, Fraction(5, 6), 1, 0),
    # the first passage of a document finds it; the others take places
    ("a#1 a#2 a#3 b#1", ["a", "b"], 0.5, 1, 1, 1),
    ("a#2 a#1", ["a", "a#1"], 1, 1, 1, 1),
    ("", ["a", "b"], 0, 0, 0, 0),
]

# Answer, quotes, whether one of them contains the answer.
QUOTED: list[tuple[str, list[str], float | None]] = [
    ("1868", ["It was founded.", "That was in 1868"], 1.0),
    ("1868", [], 0.0),
    ("1868", ["18681 of them"], 0.0),
    ("1868", ["from 1868–1870"], 0.0),  # as for EM, marks beyond ASCII join
    ("The Skerry Suite", ["a Skerry   Suite"], 1.0),
    ("Skerry Suite", ["Skerry", "Suite"], 0.0),  # no single one contains it
    ("Lena Holt", ["Lena B. Holt"], 0.0),
    ("No.", ["no"], None),
    ("yes, it is", ["yes, it is so"], 1.0),
    ("the", ["the"], None),
]


@pytest.mark.parametrize(
    ("metric", "reply", "answers", "score"),
    [
        (metric, *row)
        for metric, rows in (
            *((scoring.exact_match, EXACT), (scoring.f1, OVERLAP)),
            (scoring.contained, CONTAINED),
        )
        for row in rows
    ],
)
def test_text_is_scored(
    metric: Callable[[str, list[str]], float], reply: str, answers: list[str], score: float
) -> None:
    assert metric(reply, answers) == pytest.approx(score)


@pytest.mark.parametrize(("status", "text", "answers", "judged", "crag", "refused"), ENDED)
def test_crag_score_and_refusal(
    *, status: str, text: str, answers: list[str], judged: bool | None, crag: float, refused: float
) -> None:
    scores = scoring.answer_scores(status, text, answers, judged)
    assert (scores["crag"], scores["refused"]) == (crag, refused)
    assert (scores["answered_em"] is None) == (scores["answered_f1"] is None) == bool(refused)
    assert scores.get("acc_lm") == judged
    if refused:
        assert scores["em"] == scores["f1"] == crag


def test_without_right_answers_only_refusals_are_scored() -> None:
    assert scoring.answer_scores("answered", "cat", []) == {"refused": 0}
    assert scoring.answer_scores("unknown", "", []) == {"refused": 1}


@pytest.mark.parametrize(
    ("status", "weak", "text", "answer", "colors"),
    [
        ("answered", False, "a cat", "cat", (1, 1, 0, None)),
        ("answered", False, "dog", "cat", (1, 0, 0, None)),
        ("answered", True, "cat", "cat", (0, None, 1, 1)),
        ("answered", True, "cat", "", (0, None, 1, 0)),
        ("answered", None, "cat", "cat", (None, None, None, None)),
        ("unknown", None, "", "cat", (0, None, 0, None)),
        ("unknown", True, "", "", (0, None, 0, None)),
    ],
)
def test_colors_and_right_answers_of_each(
    *, status: str, weak: bool | None, text: str, answer: str, colors: tuple[float | None, ...]
) -> None:
    support = None if weak is None else Support(score=0.5, answerable=0.5, weak=weak)
    result = Result(thread="t", system="s", question="q", status=status, text=text, checked=support)
    scores = result.scored(GoldQuestion(set="s", id="q", question="?", answers=(answer,))).scores
    assert tuple(scores[name] for name in ("green", "green_right", "amber", "amber_right")) == colors


def names(id: str) -> list[str]:
    """Return a passage's id and that of its document."""
    return [id, id.partition("#")[0]]


@pytest.mark.parametrize(("cited", "gold", "support", "precision", "recalled"), CITED)
def test_citations(cited: str, gold: list[str], support: float, precision: float | None, recalled: float) -> None:
    scores = scoring.citation_scores([names(id) for id in cited.split()], gold, answered=True)
    assert scores["support"] == support
    assert scores["citation_precision"] == (None if precision is None else pytest.approx(float(precision)))
    assert scores["citation_recall"] == pytest.approx(float(recalled))


def test_citation_scores_need_gold_and_an_answer() -> None:
    assert set(scoring.citation_scores([names("a#1")], [], answered=True).values()) == {None}
    assert set(scoring.citation_scores([], ["a"], answered=False).values()) == {None}


@pytest.mark.parametrize(("found", "gold", "at_2", "at_5", "at_20", "every"), FOUND)
def test_recall(*, found: str, gold: list[str], at_2: float, at_5: float, at_20: float, every: float) -> None:
    hits = [
        Hit(passage=Passage(id=id, document_id=names(id)[1], title=id, text=id, start=0, end=1), score=1 / at, rank=at)
        for at, id in enumerate(found.split(), start=1)
    ]
    shares = recall(hits, gold)
    assert (shares["recall@2"], shares["recall@5"], shares["recall@20"]) == pytest.approx((at_2, at_5, at_20))
    assert shares["all@5"] == every


@pytest.mark.parametrize(("text", "quotes", "share"), QUOTED)
def test_answer_contained_in_a_citation(text: str, quotes: list[str], share: float | None) -> None:
    assert scoring.quoted(text, quotes) == share


@pytest.mark.parametrize(
    ("shown", "gold", "scores"),
    [("lake", "lake hill", (0.5, 0)), ("lake hill", "lake hill", (1, 1)), ("", "", (None, None))],
)
def test_what_was_shown(shown: str, gold: str, scores: tuple[float | None, float | None]) -> None:
    result = Result(thread="t", system="s", question="q", status="unknown", shown=shown.split())
    found = result.scored(GoldQuestion(set="s", id="q", question="?", gold=tuple(gold.split()))).scores
    assert (found["shown"], found["all_shown"]) == scores
