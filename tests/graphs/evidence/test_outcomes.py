"""Answers that state that there is none, and answers to yes/no questions."""

import pytest
from scenes import passage
from scripted_model import ScriptedModel

from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.graphs.core.answer import make_verdict
from sleuth.graphs.evidence.citations import cite_sentence
from sleuth.graphs.evidence.outcomes import make_note, stated_answer, verdict_of_sentences, with_sentence_ends
from sleuth.tools.storage.archive import MemoryArchive


@pytest.mark.parametrize(
    "answer",
    [
        *("I don't know.", "I don’t know", "“I do not know.”", "I do not know who built the Old Mill."),
        *("I cannot answer this from the given sources.", "I can’t tell.", "I'm not sure", "No idea."),
        *("The sources do not mention who built it.", "The provided passages don’t contain this information."),
        *("Not mentioned in the sources.", "It is not specified in the documents", "Unknown", "The answer is unknown."),
        *("Sorry, I don't know.", "I’m sorry, but I cannot determine that.", "Unable to answer.", "No answer found"),
        *("There is no information about this in the text.", "Not enough information to answer.", "N/A", "none"),
        *("I don't know. The sources do not mention it.", "Based on the sources, I cannot determine who built it."),
        *("It cannot be determined from the context.", "The builder is not mentioned in the passages."),
        *("Ich weiß es nicht.", "Je ne sais pas.", "不知道。", "Не знаю"),
    ],
)
def test_answer_that_states_none_is_empty(answer: str) -> None:
    assert stated_answer(answer) == ""


@pytest.mark.parametrize(
    "answer",
    [
        *("Unknown Pleasures", "The unknown soldier", "Nobody knows", "No one", "He was not found", "No"),
        *("I don't know, but Ada Brask built it", "Ada Brask. The sources do not mention a second builder."),
        *("The materials do not burn", "The source of the Nile", "No Country for Old Men", "Sorry", "1871"),
    ],
)
def test_answer_with_words_of_a_refusal_is_kept(answer: str) -> None:
    assert stated_answer(answer) == answer


ASKS = ["Were both built by Ada?", "In 1871, was the mill finished?", "And isn’t it old?"]


@pytest.mark.parametrize("question", ASKS)
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Yes, both were", "yes"),
        ("Yes.", "yes"),
        ("“Yes”", "yes"),
        ("yes – both [1]", "yes"),
        ("No, only the mill was.", "no"),
        ("No; only one", "no"),
        ("No one", "No one"),
        ("No. 5", "No. 5"),
        ("Both were", "Both were"),
    ],
)
def test_answer_to_a_yes_or_no_question_is_that_word(question: str, answer: str, text: str) -> None:
    assert stated_answer(answer, question) == text


@pytest.mark.parametrize("question", ["", "Which song is it?", "Who did it?"])
def test_answer_to_another_question_keeps_its_words(question: str) -> None:
    assert stated_answer("Yes, Sir", question) == "Yes, Sir"


@pytest.mark.parametrize(("count", "ends"), [(1, None), (2, [4, 9]), (3, [4, 9, 16])])
def test_verdict_names_the_ends_of_several_sentences(count: int, ends: list[int] | None) -> None:
    mill = cite_sentence(passage("mill", "The mill is old."), 0)
    model = ModelCaller(ScriptedModel(), MemoryArchive(), seed="")
    sentences = [make_note("?", text, [mill]) for text in ("One.", "Two.", "Three.")]
    verdict = verdict_of_sentences(model, sentences[:count], [])
    assert verdict["text"] == "One. Two. Three."[: ends[-1] if ends else 4]
    assert [each.get("sentence_ends") for each in verdict["citations"]] == [ends]


def test_citations_name_the_sentences_that_they_support() -> None:
    mill, gate = (cite_sentence(passage(name, f"The {name} is old."), 0) for name in ("mill", "gate"))
    sentences = [make_note("?", "One.", [mill]), make_note("?", "Two.", [mill]), make_note("?", "Three.", [])]
    verdict = make_verdict("answered", "One. Two. Three.", [*sentences, make_note("?", "Before.", [gate])])
    found = with_sentence_ends(verdict, sentences, [4, 9, 16])["citations"]
    assert [(each["passage"], each.get("sentence_ends")) for each in found] == [
        (mill["passage"], [4, 9]),
        (gate["passage"], None),
    ]
