"""Questions that compare two dates, and the one of the two that they ask for."""

import pytest

from sleuth.graphs.evidence.comparison import read_comparison


@pytest.mark.parametrize(
    ("question", "asked", "latest"),
    [
        ("Who was born first, Oda Brask or Jon Rell?", "When was {} born?", False),
        ("Who is younger, Oda Brask or Jon Rell ?", "When was {} born?", True),
        ("Who died later Oda Brask or Jon Rell?", "When did {} die?", True),
        ("Which ferry was built first, Oda Brask or Jon Rell?", "When was {} built?", False),
        ("Which ferry was built more recently, Oda Brask or Jon Rell?", "When was {} built?", True),
        ("Which film came out earlier, Oda Brask or Jon Rell?", "When was {} released?", False),
        (
            "Which film has the director born earlier, Oda Brask or Jon Rell?",
            "When was the director of {} born?",
            False,
        ),
        ("Which book whose author is older, Oda Brask or Jon Rell?", "When was the author of {} born?", False),
        ("Which lease was signed last, between Oda Brask or Jon Rell?", "When was {} signed?", True),
    ],
)
def test_the_date_of_each_name_is_asked(question: str, asked: str, latest: bool) -> None:
    compared = read_comparison(question)
    assert compared is not None
    assert compared.names == ("Oda Brask", "Jon Rell")
    assert compared.questions == (asked.format("Oda Brask"), asked.format("Jon Rell"))
    assert compared.latest == latest


def test_names_may_contain_commas() -> None:
    compared = read_comparison("Which film was released first, Rain, Again or Go, Varn, Go?")
    assert compared is not None
    assert compared.names == ("Rain, Again", "Go, Varn, Go")


@pytest.mark.parametrize(
    "question",
    [
        "Who is taller, Oda Brask or Jon Rell?",
        "Who was the first mayor or keeper of Varn?",
        "Which is the first to open, the mill or the ferry?",
        "When was the ferry built?",
        "Who built the first ferry?",
    ],
)
def test_other_questions_are_none(question: str) -> None:
    assert read_comparison(question) is None


@pytest.mark.parametrize(
    ("dates", "first"),
    [
        (("1911-05-02", "1911-06"), "the mill"),
        (("1911", "1904-01-01"), "the ferry"),
        (("1911", "1911-06"), None),
        (("1911-05", None), None),
    ],
)
def test_dates_decide_as_far_as_both_are_given(dates: tuple[str, str], first: str | None) -> None:
    compared = read_comparison("Which was built first, the mill or the ferry?")
    assert compared is not None
    assert compared.choose(dates) == first
