import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.tools.text import find_aliases, find_mentions, find_phrases, kept_names, name_key
from sleuth.tools.text.names import MOST_NAMES
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


def test_a_name_holds_shorter_names() -> None:
    names = kept_names("They met at the Mountrail County Courthouse in Stanley.")
    assert {"mountrail county courthouse", "mountrail county", "stanley"} <= set(names)


def test_names_go_over_small_words_and_not_over_sentence_ends() -> None:
    names = kept_names("He knew the Duke of Lucca. Tuscany was far.")
    assert "duke of lucca" in names
    assert "lucca tuscany" not in names


def test_the_first_word_of_a_sentence_alone_is_no_name() -> None:
    assert "almost" not in kept_names("Almost all came. Later Kelp won.")


def test_mention_has_its_position() -> None:
    text = "In 1851 the Grey Sister left Port Lethany."
    found = {mention.name: text[mention.start : mention.end] for mention in find_mentions(text)}
    assert found["grey sister"] == "Grey Sister"


def test_a_link_mentions_what_it_leads_to() -> None:
    assert "copper strike of 1911" in kept_names("It ended [the strike](../copper-strike-of-1911.md#end).")
    assert kept_names("See [this](https://example.org/page.html).") == []


def test_a_text_without_capitals_mentions_runs_of_words() -> None:
    names = kept_names("the grey sister left port lethany at dawn and never came back to the old harbour")
    assert {"grey sister", "port lethany"} <= set(names)
    assert "the grey" not in names


def test_a_script_without_capitals_mentions_words_and_runs_of_them() -> None:
    assert {"ירושלים", "בירת ישראל"} <= set(kept_names("העיר ירושלים היא בירת ישראל מאז."))


def test_a_script_without_spaces_mentions_runs_of_characters() -> None:
    assert {"琵琶湖", "滋賀県"} <= set(kept_names("琵琶湖は滋賀県にある。"))


def test_a_title_gives_its_shorter_forms() -> None:
    known = find_aliases(passage("x", title="Lambert, Margrave of Tuscany (10th century)"))
    assert known["lambert margrave of tuscany 10th century"] == 1.0
    assert known["lambert margrave of tuscany"] == 0.9
    assert "lambert" not in known  # one word before a comma is too little
    assert find_aliases(passage("x", title="Allen Jones, Bishop of Ely"))["allen jones"] == 0.7
    assert find_aliases(passage("x", title="The Salt Ledger"))["salt ledger"] == 0.9


def test_headings_file_names_and_bold_names_are_aliases() -> None:
    text = "## Pellowrig Light\n\nThe **Great Lamp** was lit."
    known = find_aliases(passage(text, title="Towers", document="notes/gannet_nose.md"))
    assert {"towers", "pellowrig light", "gannet nose", "great lamp"} <= known.keys()
    assert known["pellowrig light"] < known["towers"]


def test_without_a_title_a_text_goes_by_the_name_it_begins_with() -> None:
    assert find_aliases(passage("Peter Phillip Bonetti (born 1941) was a keeper."))["peter phillip bonetti"] == 0.5


def test_small_words_and_numbers_are_no_aliases() -> None:
    assert find_aliases(passage("it was so", title="It")) == {}
    assert find_aliases(passage("it was so", title="1917")) == {}


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
