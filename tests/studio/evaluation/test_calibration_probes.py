"""Which questions a threshold is fitted on."""

from sleuth.studio.evaluation.calibration import Probe, probes
from sleuth.studio.evaluation.data import GoldQuestion, Hop


def asked(
    *hops: tuple[str, str], question: str = "Where was the designer born?", answer: str = "Tolvane"
) -> GoldQuestion:
    steps = tuple(Hop(question=asked, answer=answer) for asked, answer in hops)
    return GoldQuestion(set="s", id="1", question=question, answers=(answer,) if answer else (), decomposition=steps)


DESIGNER = ("Who designed it?", "Ilse Corrodane")


def test_steps_are_asked_with_earlier_answers_filled_in() -> None:
    assert probes([asked(DESIGNER, ("Where was #1 born?", "in Tolvane"))]) == [
        Probe(question="Who designed it?", answers=("Ilse Corrodane",)),
        Probe(question="Where was Ilse Corrodane born?", answers=("in Tolvane", "Tolvane")),
    ]


def test_a_relation_becomes_a_question() -> None:
    found = probes([asked(("Van Hook >> county", "Mountrail"), ("#1 >> seat", "Tolvane"))])
    assert [probe.question for probe in found] == ["What is the county of Van Hook?", "What is the seat of Mountrail?"]


def test_without_steps_or_an_answer_the_question_itself_is_asked() -> None:
    assert probes([asked()]) == [Probe(question="Where was the designer born?", answers=("Tolvane",))]
    unanswerable = asked(("Who is it?", ""), answer="")
    assert probes([unanswerable]) == [Probe(question="Where was the designer born?", answers=())]


def test_what_several_questions_share_is_asked_once() -> None:
    two = [asked(DESIGNER, (f"Which {each} is #1 from?", each)) for each in ("town", "island")]
    assert [probe.question for probe in probes(two)] == [
        "Who designed it?",
        "Which town is Ilse Corrodane from?",
        "Which island is Ilse Corrodane from?",
    ]
