"""Follow-ups resolved by rules."""

import pytest

from sleuth.agents.formatting import Turn
from sleuth.graphs.chat.references import refers_back, resolve_references

LIGHT = ("Who built the Pellowrig Light?", "Bastian Oake [1]\n\n[1] Light: “by Bastian Oake”")
BORN = ("And where was he born?", "Dunvarrow [1]")
MILL = ("When did Constance Vey found Fennimer Mill?", "1868 [1]")
LOWER = ("who founded the mill", "The mill was founded by Constance Vey in 1868. [1]")
WIFE = ("Who is the wife of Anselm Ruske?", "Averil Quay.")
ABOUT = ("Who is Constance Vey?", "The founder of the Fennimer Mill")
NOTHING = ("Who was Averil Quay?", "I found no answer.")
THANKS = ("Thanks!", "You are welcome!")


def turns(*exchanges: tuple[str, str]) -> list[Turn]:
    return [
        turn
        for asked, said in exchanges
        for turn in (Turn(speaker="user", text=asked), Turn(speaker="assistant", text=said))
    ]


@pytest.mark.parametrize(
    ("message", "before", "resolved"),
    [
        ("and when was she born?", [MILL], "When was Constance Vey born?"),
        ("and when was she born?", [LOWER], "When was Constance Vey born?"),
        ("and when was she born?", [WIFE], "When was Averil Quay born?"),
        ("and when was she born?", [ABOUT], "When was Constance Vey born?"),
        ("and when was she born?", [NOTHING, THANKS], "When was Averil Quay born?"),
        ("and when was she born?", [("Which miller founded it?", "Constance Vey [1]")], "When was Constance Vey born?"),
        ("and when was she born?", [("who was constance vey?", "A miller [^1]")], "When was constance vey born?"),
        ("and when was she born?", [("who founded the mill?", "constance vey [1]")], "When was constance vey born?"),
        ("and when was she born?", [MILL, ("Which town has a mill?", "Dunvarrow")], "When was Constance Vey born?"),
        (
            "and when was she born?",
            [MILL, ("Who owns Corn Hall?", "I found no answer.")],
            "When was Constance Vey born?",
        ),
        ("And where was he born?", [LIGHT], "Where was Bastian Oake born?"),
        ("And where was he born?", [LIGHT, THANKS], "Where was Bastian Oake born?"),
        ("and when did he die?", [LIGHT, BORN], "When did Bastian Oake die?"),
        ("and when?", [LIGHT, BORN], "When was Bastian Oake born?"),
        ("who lives there?", [LIGHT, BORN], "Who lives in Dunvarrow?"),
        ("When was it founded?", [LIGHT, BORN], "When was Dunvarrow founded?"),
        ("When was it built?", [LIGHT], "When was the Pellowrig Light built?"),
        ("when was it opened?", [LOWER], "When was the mill opened?"),
        ("Who was his father?", [LIGHT], "Who was Bastian Oake’s father?"),
        ("Who met her, and who knew her mother?", [WIFE], "Who met Averil Quay, and who knew Averil Quay’s mother?"),
        ("Did he live in Dunvarrow?", [LIGHT], "Did Bastian Oake live in Dunvarrow?"),
        ("And the Grey Sister?", [LIGHT], "Who built the Grey Sister?"),
        ("what about Anselm Ruske?", [LIGHT, BORN], "Where was Anselm Ruske born?"),
    ],
)
def test_follow_up_carries_the_name_of_the_turn_before(
    message: str, before: list[tuple[str, str]], resolved: str
) -> None:
    assert resolve_references(message, turns(*before)) == resolved


@pytest.mark.parametrize(
    "message",
    [
        "When was Anselm Ruske born?",
        "Where did Anselm Ruske meet his wife?",
        "Is there a mill in Dunvarrow?",
        "and then?",
    ],
)
def test_message_without_a_reference_is_unchanged(message: str) -> None:
    assert resolve_references(message, turns(LIGHT)) == message


@pytest.mark.parametrize("answer", ["I found no answer.", "1868"])
def test_person_whom_no_turn_names_stays_open(answer: str) -> None:
    asked = "and when was she born?"
    assert resolve_references(asked, turns(("who founded the mill?", answer))) == asked


def test_pronoun_without_a_turn_before_is_unchanged() -> None:
    assert refers_back("When was she born?")
    assert resolve_references("When was she born?", turns(THANKS)) == "When was she born?"
