"""Which questions a threshold is fitted on."""

import pytest

from sleuth.studio.evaluation.calibration import probes
from sleuth.studio.evaluation.data import GoldQuestion, Hop


def asked(
    *hops: tuple[str, str], question: str = "Where was the designer born?", answer: str = "Tolvane"
) -> GoldQuestion:
    steps = tuple(Hop(question=asked, answer=answer) for asked, answer in hops)
    return GoldQuestion(set="s", id="1", question=question, answers=(answer,) if answer else (), decomposition=steps)


DESIGNER = ("Who designed it?", "Ilse Corrodane")


@pytest.mark.parametrize(
    ("questions", "found"),
    [
        pytest.param(
            [asked(DESIGNER, ("Where was #1 born?", "in Tolvane"))],
            {DESIGNER[0]: (DESIGNER[1],), "Where was Ilse Corrodane born?": ("in Tolvane",)},
            id="steps, with earlier answers filled in",
        ),
        pytest.param([asked()], {"Where was the designer born?": ("Tolvane",)}, id="the question without steps"),
        pytest.param([asked(("Who is it?", ""), answer="")], {"Where was the designer born?": ()}, id="no answer"),
        pytest.param(
            [asked(DESIGNER, (f"Which {each} is #1 from?", each), answer=each) for each in ("town", "island")],
            {
                DESIGNER[0]: (DESIGNER[1],),
                "Which town is Ilse Corrodane from?": ("town",),
                "Which island is Ilse Corrodane from?": ("island",),
            },
            id="shared steps once",
        ),
    ],
)
def test_probes_are_steps_or_questions(questions: list[GoldQuestion], found: dict[str, tuple[str, ...]]) -> None:
    assert probes(questions) == found
