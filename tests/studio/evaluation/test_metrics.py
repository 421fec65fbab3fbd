"""Scores worked out by hand from the definitions (SQuAD 2.0's script: normalise, then compare words)."""

import pytest

from sleuth.studio.evaluation.scoring import metrics

EXACT: list[tuple[str, list[str], float]] = [
    # articles
    ("the cat", ["cat"], 1),
    ("A cat", ["the cat"], 1),
    ("an apple", ["apple"], 1),
    ("The Who", ["Who"], 1),
    ("theatre", ["the atre"], 0),
    ("Anna", ["na"], 0),
    ("a", ["the"], 1),
    ("vitamin A", ["vitamin"], 1),
    # letter case and white space
    ("PARIS", ["Paris"], 1),
    ("  New   York ", ["New York"], 1),
    ("New\nYork\t", ["new york"], 1),
    ("NewYork", ["New York"], 0),
    # punctuation
    ("U.S.A.", ["USA"], 1),
    ("it's", ["its"], 1),
    ("rock-n-roll", ["rocknroll"], 1),
    ("rock-n-roll", ["rock n roll"], 0),
    ("“Paris”", ["Paris"], 0),
    ("Washington, D.C.", ["washington dc"], 1),
    ("AT&T", ["ATT"], 1),
    ("...", [""], 1),
    # yes and no
    ("yes", ["Yes."], 1),
    ("no", ["yes"], 0),
    ("Yes, it is", ["yes"], 0),
    ("no", ["not"], 0),
    # numbers
    ("1,907", ["1907"], 1),
    ("1907.0", ["1907"], 0),
    ("3.5", ["35"], 1),
    ("twelve", ["12"], 0),
    ("812 m", ["812 metres", "812", "812 m"], 1),
    ("$5", ["5"], 1),
    # aliases
    ("JFK", ["John F. Kennedy", "JFK"], 1),
    ("Kennedy", ["John F. Kennedy", "JFK"], 0),
    # empty
    ("", [""], 1),
    ("", ["cat"], 0),
    ("cat", [""], 0),
    ("the", [""], 1),
    # a right answer of which nothing is left is none, where there is another
    ("", ["A", "blood group A"], 0),
    ("a", ["A", "blood group A"], 0),
    ("group", ["A", "group"], 1),
    # unicode
    ("Zürich", ["zürich"], 1),
    ("Zürich", ["Zurich"], 0),
    ("ÉCOLE", ["école"], 1),
    ("東京", ["東京"], 1),
    ("東京。", ["東京"], 0),
    ("Мёд", ["мёд"], 1),
    ("cafe\u0301", ["caf\u00e9"], 0),
]

OVERLAP: list[tuple[str, list[str], float]] = [
    # equal and disjoint
    ("cat", ["cat"], 1),
    ("cat", ["dog"], 0),
    ("the cat", ["a cat"], 1),
    ("Cat!", ["cat"], 1),
    # parts: 2 * common / (words of the reply + words of the answer)
    ("big cat", ["cat"], 2 / 3),
    ("cat", ["big cat"], 2 / 3),
    ("big black cat", ["cat"], 1 / 2),
    ("big black cat", ["black cat"], 4 / 5),
    ("cat dog", ["dog bird"], 1 / 2),
    ("cat dog", ["dog cat"], 1),
    ("a b c d", ["b c d"], 1),
    ("b c d e", ["c d"], 2 / 3),
    ("one two three four", ["four five six"], 2 / 7),
    # repeated words count as often as both have them
    ("cat cat", ["cat"], 2 / 3),
    ("cat cat", ["cat cat cat"], 4 / 5),
    ("no no no", ["no"], 1 / 2),
    ("ha ha", ["ha ha"], 1),
    # punctuation and articles
    ("the U.S.", ["US"], 1),
    ("in the U.S.", ["US"], 2 / 3),
    ("Washington, D.C.", ["Washington"], 2 / 3),
    ("an old the man", ["old man"], 1),
    ("rock-n-roll music", ["rocknroll"], 2 / 3),
    # yes and no
    ("yes", ["yes"], 1),
    ("yes", ["no"], 0),
    ("Yes, it is", ["yes"], 1 / 2),
    ("no", ["No."], 1),
    # numbers
    ("in 1907", ["1907"], 2 / 3),
    ("1,907 people", ["1907"], 2 / 3),
    ("812 metres", ["812 m"], 1 / 2),
    ("5 May 1907", ["May 5, 1907"], 1),
    # aliases: the best counts
    ("John Kennedy", ["JFK", "John F. Kennedy"], 4 / 5),
    ("John Kennedy", ["JFK", "John Kennedy"], 1),
    ("F Kennedy", ["John F. Kennedy", "Kennedy"], 4 / 5),
    # empty
    ("", [""], 1),
    ("", ["cat"], 0),
    ("cat", [""], 0),
    ("the", [""], 1),
    ("the", ["cat"], 0),
    ("...", ["cat", ""], 1),
    # a right answer of which nothing is left is none, where there is another
    ("", ["The", "cat"], 0),
    ("the cat", ["The", "black cat"], 2 / 3),
    ("", ["The"], 1),
    # unicode
    ("Zürich See", ["Zürich"], 2 / 3),
    ("Zürich", ["Zurich"], 0),
    ("東京 都", ["東京"], 2 / 3),
    ("Мёд и соль", ["соль"], 1 / 2),
]


BESIDE_HOTPOT: list[tuple[str, list[str], float, float]] = [
    # words that go with a yes or a no
    ("yes it is", ["yes"], 0, 1 / 2),
    ("yes", ["yes it is"], 0, 1 / 2),
    ("no one", ["no"], 0, 2 / 3),
    # nothing against nothing
    ("", [""], 1, 1),
]


@pytest.mark.parametrize(("said", "answers", "score"), EXACT)
def test_exact_match(said: str, answers: list[str], score: float) -> None:
    assert metrics.exact_match(said, answers) == score


@pytest.mark.parametrize(("said", "answers", "score"), OVERLAP)
def test_f1(said: str, answers: list[str], score: float) -> None:
    assert metrics.f1(said, answers) == pytest.approx(score)


@pytest.mark.parametrize(("said", "answers", "em", "overlap"), BESIDE_HOTPOT)
def test_where_hotpotqa_differs(said: str, answers: list[str], em: float, overlap: float) -> None:
    """SQuAD's numbers, which are ours; HotpotQA's script gives the same EM and an F1 of 0 in each of these."""
    assert (metrics.exact_match(said, answers), metrics.f1(said, answers)) == (em, pytest.approx(overlap))


@pytest.mark.parametrize("status", ["refused", "unknown", "invalid_question"])
def test_a_refusal_is_right_where_there_is_no_answer(status: str) -> None:
    right, missing = (metrics.answer_scores(status, "I cannot say", answers) for answers in ([""], ["cat"]))
    assert (right["em"], right["f1"], right["crag"], right["refused"], right["answered_em"]) == (1, 1, 1, 1, None)
    assert (missing["em"], missing["f1"], missing["crag"], missing["answered_em"]) == (0, 0, 0, None)


def test_a_wrong_answer_is_worse_than_none() -> None:
    assert metrics.answer_scores("answered", "dog", ["cat"])["crag"] == -1
    assert metrics.answer_scores("answered", "cat", [""])["crag"] == -1
    assert metrics.answer_scores("answered", "the cat", ["cat"])["crag"] == 1
    assert metrics.answer_scores("answered", "a feline", ["cat"], judged=True)["crag"] == 1


def test_that_a_premise_is_false_is_a_right_answer_where_it_is() -> None:
    never = ["he never won", "invalid question"]
    assert metrics.answer_scores("invalid_question", "", never)["crag"] == 1
    assert metrics.answer_scores("unknown", "", never)["crag"] == 0
    assert metrics.answer_scores("answered", "twice", never)["crag"] == -1
    assert metrics.answer_scores("invalid_question", "", ["twice"])["crag"] == 0
    assert metrics.answer_scores("answered", "a feline", ["cat"], judged=True)["acc_lm"] == 1


def test_what_was_shown() -> None:
    assert metrics.shown_recall(["lake"], ["lake", "hill"]) == {"shown": 0.5, "all_shown": 0}
    assert metrics.shown_recall(["lake", "hill"], ["lake", "hill"]) == {"shown": 1, "all_shown": 1}
    assert metrics.shown_recall([], []) == {"shown": None, "all_shown": None}


def test_enough_cases_were_worked_out() -> None:
    assert len(EXACT) >= 30
    assert len(OVERLAP) >= 30
