"""Clauses that citations quote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.roles.data.teaching import quote_clause

LONG = (
    "The academy, after many years in which members of all its colleges took part and wrote letters, finally moved to "
    "the city of Ghent, where it is still to be seen."
)


@pytest.mark.parametrize(
    ("sentence", "answer", "quoted"),
    [
        ("He was born in Ghent.", "Ghent", "He was born in Ghent."),
        (LONG, "Ghent", "and wrote letters, finally moved to the city of Ghent"),
        ("Ran was directed by Akira Kurosawa and had a cast of over a thousand people.", "Akira Kurosawa",
         "Ran was directed by Akira Kurosawa"),
    ],
)  # fmt: skip
def test_quote_clause_starts_at_a_clause_and_has_the_answer(sentence: str, answer: str, quoted: str) -> None:
    assert quote_clause(sentence, answer, most=60) == quoted


@given(st.text(alphabet="ab ,.é中", max_size=300), st.text(alphabet="ab ,é中", max_size=20), st.integers(20, 120))
def test_quote_clause_is_a_short_part_of_its_sentence(sentence: str, answer: str, most: int) -> None:
    found = quote_clause(sentence, answer, most=most)
    assert found in sentence
    assert len(found) <= most + max(map(len, sentence.split(" ")), default=0)
