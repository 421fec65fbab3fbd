import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.tools.search import MemoryKeywords
from sleuth.tools.text import ENGLISH, STEMMED_LANGUAGES, language_of, question_language, question_stems, stems
from sleuth.tools.types import Passage

SETS = Path(__file__).parent / "languages"
LANGUAGE = st.sampled_from(sorted(STEMMED_LANGUAGES))


def test_words_have_the_stems_of_their_language() -> None:
    assert stems("Die Mühlen und Brücken", "de") == ["de:muhl", "de:bruck"]
    assert stems("The mills and bridges", "en") == ["mill", "bridg"]
    assert stems("los molinos", "es") == stems("el molino", "es") == ["es:molin"]


@pytest.mark.parametrize("language", STEMMED_LANGUAGES)
def test_each_language_has_a_stemmer(language: str) -> None:
    assert len(stems("xyz 2024", language)) == 2


def test_text_without_spaces_becomes_characters_and_pairs() -> None:
    assert stems("磨坊 mills。桥", "en") == ["mill", "磨", "坊", "磨坊", "桥"]


def test_language_without_a_stemmer_is_stemmed_as_english() -> None:
    assert language_of("Młyn mielił zboże z okolicznych wsi aż do końca wojny.") == ENGLISH
    assert language_of("Die Mühle mahlte das Korn der umliegenden Dörfer.") == "de"


def test_question_has_the_stems_of_all_languages_of_the_passages() -> None:
    found = question_stems("Welche Mühlen mahlten das Korn der Dörfer?", ["en", "de"])
    assert found["de:muhl"] == ["de:muhl", "mühlen"]
    assert "de:das" not in found


def test_question_in_another_language_counts_as_the_most_frequent_one() -> None:
    german = "Welche Mühlen mahlten das Korn der Dörfer?"
    assert question_language(german, ["en", "de"]) == "de"
    assert question_language(german, ["en", "es"]) == "en"
    assert question_stems("mills", ["en"]) == {"mill": ["mill"]}


def test_language_of_a_question_is_not_detected_if_the_passages_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("sleuth.tools.text.stemming.detect_language")
    assert question_language("Welche Mühlen mahlten das Korn?", ["en"]) == "en"


@given(text=st.text(), language=LANGUAGE)
def test_question_in_one_language_has_the_stems_of_a_passage(text: str, language: str) -> None:
    assert [*question_stems(text, [language])] == [*dict.fromkeys(stems(text, language))]


@given(text=st.text(), languages=st.lists(LANGUAGE, min_size=2, max_size=4, unique=True))
def test_question_has_no_other_stems_than_passages_have(text: str, languages: list[str]) -> None:
    found = question_stems(text, languages)
    assert [*found] == [*dict.fromkeys(stems(text, question_language(text, languages)))]
    possible = {stem for language in languages for stem in stems(text, language)}
    assert possible >= {variant for variants in found.values() for variant in variants}


def passages(name: str) -> list[Passage]:
    lines = (SETS / f"{name}.corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [Passage(document_id=row["id"], start=0, end=len(row["text"]), **row) for row in map(json.loads, lines)]


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
    english = [_passage(f"en{n}", "The museum in Harwede is open to all on each day of the week.") for n in range(20)]
    german = _passage(
        "de", "Das Museum in Harwede ist an jedem Tag der Woche außer montags für alle Besucher geöffnet."
    )
    index = MemoryKeywords([*english, german])
    found = index.search("museum Harwede", 30)
    assert len(found) == 21
    assert max(score for _, score in found) < 1.5 * min(score for _, score in found)


def _passage(id_: str, text: str) -> Passage:
    return Passage(id=id_, document_id=id_, title="", text=text, start=0, end=len(text))
