"""Containment and ROUGE-L, worked out by hand from their definitions."""

import pytest

from sleuth.studio.evaluation.scoring import metrics

CONTAINED: list[tuple[str, list[str], float]] = [
    # part of a sentence
    ("It was the Quarve Haven.", ["Quarve Haven"], 1),
    ("It was in 1907.", ["1907"], 1),
    ("Paris", ["Paris"], 1),
    ("Paris is where she was born", ["Paris"], 1),
    ("She was born in Paris", ["Lyon"], 0),
    # only whole words, in their order, side by side
    ("It was in 19071.", ["1907"], 0),
    ("Anna Bell", ["Ann"], 0),
    ("Bell, Anna", ["Anna Bell"], 0),
    ("Anna Maria Bell", ["Anna Bell"], 0),
    ("Bell", ["Anna Bell"], 0),
    ("catalogue", ["cat"], 0),
    # articles do not count, in any position
    ("the cat on the mat", ["a cat"], 1),
    ("cat on mat", ["the cat on the mat"], 1),
    ("a", ["the"], 1),
    ("an owl", ["owl"], 1),
    # punctuation disappears without leaving a space
    ("in the U.S.", ["US"], 1),
    ("rock-n-roll", ["rock"], 0),
    ("Washington, D.C., of course", ["washington dc"], 1),
    ("“Paris”", ["Paris"], 0),
    # yes and no
    ("Yes, it is", ["yes"], 1),
    ("Nothing", ["no"], 0),
    ("No.", ["no"], 1),
    ("yes and no", ["no"], 1),
    # numbers
    ("1,907 people", ["1907"], 1),
    ("about 12.5 km", ["125"], 1),
    ("twelve", ["12"], 0),
    # aliases
    ("Anna Bell", ["JFK", "bell"], 1),
    ("John Kennedy", ["JFK", "Kennedy, John"], 0),
    # empty
    ("", ["cat"], 0),
    ("", [""], 1),
    ("cat", [""], 0),
    ("the", [""], 1),
    # unicode
    ("in ZÜRICH today", ["zürich"], 1),
    ("in Zurich", ["Zürich"], 0),
    ("東京 都", ["東京"], 1),
    ("東京都", ["東京"], 0),
]

ROUGE_L: list[tuple[str, list[str], float]] = [
    # 2 * longest common subsequence / (words of the reply + words of the answer); articles are words here
    ("the big cat sat", ["a cat sat down"], 1 / 2),
    ("cat", ["cat"], 1),
    ("cat", ["dog"], 0),
    ("the cat", ["cat"], 2 / 3),
    ("the cat", ["a cat"], 1 / 2),
    ("big cat", ["cat"], 2 / 3),
    ("cat", ["big black cat"], 1 / 2),
    ("a b c d", ["b d"], 2 / 3),
    # in order, with gaps
    ("cat dog", ["dog cat"], 1 / 2),
    ("one two three", ["three two one"], 1 / 3),
    ("a x b y c", ["a b c"], 3 / 4),
    ("to be or not to be", ["to be"], 1 / 2),
    ("b a", ["a b a b"], 2 / 3),
    # repeated words
    ("cat cat", ["cat"], 2 / 3),
    ("no no no", ["no"], 1 / 2),
    # letter case and punctuation: what is no letter parts words
    ("CAT!", ["cat"], 1),
    ("U.S.", ["US"], 0),
    ("U.S.", ["u s"], 1),
    ("rock-n-roll", ["rock n roll"], 1),
    ("rock-n-roll", ["rocknroll"], 0),
    # yes, no and numbers
    ("Yes, it is", ["yes"], 1 / 2),
    ("no", ["yes"], 0),
    ("1,907", ["1907"], 0),
    ("5 May 1907", ["May 5, 1907"], 2 / 3),
    ("812 m", ["812 metres"], 1 / 2),
    # aliases: the best counts
    ("cat", ["dog", "cat"], 1),
    ("John Kennedy", ["JFK", "John F. Kennedy"], 4 / 5),
    # empty
    ("", [""], 1),
    ("", ["cat"], 0),
    ("cat", [""], 0),
    ("...", ["cat"], 0),
    # unicode: letters other than Latin ones without marks part words, or leave none
    ("Zürich", ["Zürich"], 1),
    ("Zürich", ["Zurich"], 0),
    ("Zürich", ["z rich"], 1),
    ("東京", ["東京"], 0),
]


@pytest.mark.parametrize(("said", "answers", "score"), CONTAINED)
def test_containment(said: str, answers: list[str], score: float) -> None:
    assert metrics.contained(said, answers) == score


@pytest.mark.parametrize(("said", "answers", "score"), ROUGE_L)
def test_rouge_l(said: str, answers: list[str], score: float) -> None:
    assert metrics.rouge_l(said, answers) == pytest.approx(score)


def test_enough_cases_were_worked_out() -> None:
    assert len(CONTAINED) >= 30
    assert len(ROUGE_L) >= 30
