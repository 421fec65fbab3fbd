import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.tools.search.keyword_index import MemoryKeywords
from sleuth.tools.text.language import (
    ENGLISH,
    STEMMED_LANGUAGES,
    detect_language,
    language_of,
    question_language,
    question_stems,
    stems,
)
from sleuth.tools.types import Passage

SETS = Path(__file__).parent / "languages"
LANGUAGE = st.sampled_from(sorted(STEMMED_LANGUAGES))


def test_words_have_the_stems_of_their_language() -> None:
    assert stems("Die Mühlen und Brücken", "de") == ["de:muhl", "de:bruck"]
    assert stems("The mills and bridges", "en") == ["mill", "bridg"]
    assert stems("los molinos", "es") == stems("el molino", "es") == ["es:molin"]

    assert stems("磨坊 mills。桥", "en") == ["mill", "磨", "坊", "磨坊", "桥"], "characters and pairs"
    assert {len(stems("xyz 2024", language)) for language in STEMMED_LANGUAGES} == {2}


LANGUAGES = {
    "Die Mühle mahlte das Korn der umliegenden Dörfer.": "de",
    "El molino molió el trigo de las aldeas vecinas.": "es",
    "The mill ground the corn of the villages nearby.": "en",
    "磨坊为附近的村庄磨麦子，现在已经关闭。": "zh",
    **dict.fromkeys(("Mill 7", "", "\x00\ud800 ")),
}


def test_language_is_detected_or_uncertain_or_stemmed_as_english() -> None:
    assert {text: detect_language(text) for text in LANGUAGES} == LANGUAGES
    assert language_of("Młyn mielił zboże z okolicznych wsi aż do końca wojny.") == ENGLISH
    assert language_of(next(iter(LANGUAGES))) == "de"


def test_question_has_the_stems_of_all_languages_of_the_passages() -> None:
    german = "Welche Mühlen mahlten das Korn der Dörfer?"
    found = question_stems(german, ["en", "de"])
    assert found["de:muhl"] == ["de:muhl", "mühlen"] and "de:das" not in found
    assert question_stems("mills", ["en"]) == {"mill": ["mill"]}
    assert question_language(german, ["en", "de"]) == "de"
    assert question_language(german, ["en", "es"]) == "en"


@given(text=st.text(), language=LANGUAGE)
def test_question_in_one_language_has_the_stems_of_a_passage(text: str, language: str) -> None:
    assert [*question_stems(text, [language])] == [*dict.fromkeys(stems(text, language))]


@given(text=st.text(), languages=st.lists(LANGUAGE, min_size=2, max_size=4, unique=True))
def test_question_has_no_other_stems_than_passages_have(text: str, languages: list[str]) -> None:
    found = question_stems(text, languages)
    assert [*found] == [*dict.fromkeys(stems(text, question_language(text, languages)))]
    possible = {stem for language in languages for stem in stems(text, language)}
    assert possible >= {variant for variants in found.values() for variant in variants}


def passage(id: str, text: str, title: str = "") -> Passage:
    return Passage(id=id, document_id=id, title=title, text=text, start=0, end=len(text))


def passages(name: str) -> list[Passage]:
    lines = (SETS / f"{name}.corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [passage(**row) for row in map(json.loads, lines)]


@pytest.fixture(scope="module")
def keywords() -> MemoryKeywords:
    return MemoryKeywords([passage for name in ("german", "spanish", "chinese") for passage in passages(name)])


@pytest.mark.parametrize("name", ["german", "spanish", "chinese"])
def test_keywords_find_the_passages_of_a_question_in_its_language(name: str, keywords: MemoryKeywords) -> None:
    questions = [json.loads(line) for line in (SETS / f"{name}.questions.jsonl").read_text("utf-8").splitlines()]
    found = {question["id"]: {id_ for id_, _ in keywords.search(question["question"], 5)} for question in questions}
    assert len(found) == 20
    assert all(found[question["id"]] >= set(question["gold_ids"]) for question in questions)


def test_rare_language_does_not_make_its_words_rare() -> None:
    """A word in one German passage is as rare as in the English ones; the longer passage then ranks last."""
    english = [passage(f"en{n}", "The museum in Harwede is open to all on each day of the week.") for n in range(20)]
    german = passage("de", "Das Museum in Harwede ist an jedem Tag der Woche außer montags für alle Besucher geöffnet.")
    index = MemoryKeywords([*english, german])
    found = index.search("museum Harwede", 30)
    assert len(found) == 21
    assert max(score for _, score in found) < 1.5 * min(score for _, score in found)
