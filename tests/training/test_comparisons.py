from sleuth.tools.evidence_checker import Evidence
from training.evidence_checker.comparisons import compose_questions

PAGES = [
    Evidence(title="Oda Brask", text="Oda Brask (3 May 1911 – 20 June 1978) was a film director. She sailed."),
    Evidence(title="Ib Tolne (director)", text="Ib Tolne( born June 4, 1935 in Kestrow) is a filmmaker."),
    Evidence(title="The Ferry", text="The Ferry is a 1951 silent film. It was directed by Oda Brask in Kestrow."),
    Evidence(title="Rain (1960 film)", text="Rain is a 1960 drama film directed by Ib Tolne."),
    Evidence(title="Snow", text="It is a 1970 film directed by Ib Tolne, without its name here."),
]


def test_composed_questions_have_the_answer_of_the_pages() -> None:
    found = {(question.text, question.answer) for seed in range(20) for question in compose_questions(PAGES, seed)}
    assert {
        ("Who was born first, Oda Brask or Ib Tolne?", "Oda Brask"),
        ("Which film came out first, Rain or The Ferry?", "The Ferry"),
        ("Which film whose director is older, Rain or The Ferry?", "The Ferry"),
        ("When was the director of film Rain born?", "June 4, 1935"),
        ("When did the director of film The Ferry die?", "20 June 1978"),
    } <= found
    assert {answer for text, answer in found if text.endswith(" or Rain?")} == {"The Ferry"}
    assert not any("died" in text or "Snow" in text for text, _ in found)


def test_composed_questions_name_their_evidence() -> None:
    (question, *_) = [each for each in compose_questions(PAGES) if each.text.startswith("When did")]
    assert {page.title for page in question.gold} == {"The Ferry", "Oda Brask"}
    assert question.facts == (
        "The Ferry is a 1951 silent film.",
        "It was directed by Oda Brask in Kestrow.",
        "Oda Brask (3 May 1911 – 20 June 1978) was a film director.",
    )
    assert [page.title for page in question.others] == ["Ib Tolne (director)"]
