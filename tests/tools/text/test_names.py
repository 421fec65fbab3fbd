import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.tools.text.names import MOST_NAMES, find_aliases, find_mentions, find_phrases, kept_names
from sleuth.tools.text.tokenization import name_key
from sleuth.tools.types import Passage


def passage(text: str, *, title: str = "", document: str = "d") -> Passage:
    return Passage(id="p", document_id=document, title=title, text=text, start=0, end=len(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mehmet Çetingöz", "mehmet cetingoz"),
        ("St. Maurice's Abbey", "St Maurice Abbey"),
        ("Love, Honor and Oh- Baby!", "love honor AND oh baby"),
        ("Blood, Sweat & Tears", "Blood Sweat Tears"),
    ],
)
def test_names_are_compared_without_case_accents_and_punctuation(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


def test_vowel_signs_of_other_scripts_are_kept() -> None:
    assert name_key("कि") != name_key("का")


@pytest.mark.parametrize(
    ("text", "names", "others"),
    [
        ("They met at the Mountrail County Courthouse.", ["mountrail county courthouse", "mountrail county"], []),
        ("He knew the Duke of Lucca. Tuscany was far.", ["duke of lucca"], ["lucca tuscany"]),
        ("Almost all came. Later Kelp won.", ["kelp"], ["almost"]),
        ("It ended [the strike](../copper-strike-of-1911.md#end).", ["copper strike of 1911"], []),
        ("See [this](https://example.org/page.html).", [], ["page", "this"]),
        (
            "the grey sister left port lethany at dawn and never came back to the old harbour",
            ["grey sister", "port lethany"],
            ["the grey"],
        ),
        ("העיר ירושלים היא בירת ישראל מאז.", ["ירושלים", "בירת ישראל"], []),
        ("琵琶湖は滋賀県にある。", ["琵琶湖", "滋賀県"], []),
    ],
)
def test_names_of_a_text(text: str, names: list[str], others: list[str]) -> None:
    found = set(kept_names(text))
    assert found >= set(names) and not found & set(others)


def test_mention_has_its_position() -> None:
    text = "In 1851 the Grey Sister left Port Lethany."
    found = {mention.name: text[mention.start : mention.end] for mention in find_mentions(text)}
    assert found["grey sister"] == "Grey Sister"


@pytest.mark.parametrize(
    ("found", "weights"),
    [
        (
            passage("x", title="Lambert, Margrave of Tuscany (10th century)"),
            {"lambert margrave of tuscany 10th century": 1.0, "lambert margrave of tuscany": 0.9},
        ),
        (passage("x", title="Allen Jones, Bishop of Ely"), {"allen jones": 0.7}),
        (passage("x", title="The Salt Ledger"), {"salt ledger": 0.9}),
        (passage("Peter Phillip Bonetti (born 1941) was a keeper."), {"peter phillip bonetti": 0.5}),
        (
            passage("## Pellowrig Light\n\nThe **Great Lamp** was lit.", title="Towers", document="a/gannet_nose.md"),
            {"towers": 1.0, "pellowrig light": 0.8, "gannet nose": 0.8, "great lamp": 0.5},
        ),
    ],
)
def test_aliases_are_titles_headings_file_names_and_leading_names(found: Passage, weights: dict[str, float]) -> None:
    aliases = find_aliases(found)
    assert aliases | weights == aliases
    assert "lambert" not in aliases  # one word before a comma is too little


def test_small_words_and_numbers_are_no_aliases() -> None:
    assert find_aliases(passage("it was so", title="It")) == find_aliases(passage("it was so", title="1917")) == {}


def test_a_phrase_without_a_capital_is_less_surely_a_name() -> None:
    sure = {phrase.name: phrase.sure for phrase in find_phrases("She knew Place de Vey and the place of birth.")}
    assert sure["place de vey"] == 1.0
    assert sure["place of birth"] < 0.5


@given(text=st.text(max_size=300), title=st.text(max_size=40))
def test_any_text_can_be_read(text: str, title: str) -> None:
    for mention in [*find_mentions(text), *find_phrases(text)]:
        assert 0 <= mention.start < mention.end <= len(text)
    assert len(kept_names(text)) <= MOST_NAMES
    assert all(0 < weight <= 1 for weight in find_aliases(passage(text, title=title)).values())
