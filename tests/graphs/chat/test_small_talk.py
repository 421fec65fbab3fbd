"""Which replies a chat may send without a search, and which questions it may ask back."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from sleuth.agents.roles.conversation import AskedBack
from sleuth.graphs.chat.messages import clarification_message
from sleuth.graphs.chat.small_talk import already_clarified, find_facts, has_subject, is_command, repeats_question


@pytest.mark.parametrize(
    ("reply", "facts"),
    [
        ("The yard was founded in 1868.", ["1868"]),
        ("It was founded by Ada Merriweather.", ["Ada", "Merriweather"]),
        ("Sure! It was Merriweather.", ["Merriweather"]),
        ("It opened in May.", ["May"]),
        ("Es wurde von Siemens gebaut.", ["Siemens"]),
        ("该船厂由王伟先生于许多年以前在海边创立。", ["该船厂由王伟先生于许多年以前在海边创立。"]),
        ("بنى السيد كمال حوض السفن القديم قرب البحر.", ["بنى السيد كمال حوض السفن القديم قرب البحر."]),
        ("Hello! What would you like to know?", []),
        ("Good morning! 😊 Feel free to ask me anything about your documents.", []),
        ("You're welcome! I'm glad I could help. Just ask if you've other questions.", []),
        ("I'm sleuth: I look up answers in your documents, and I cite them.", []),
        ("Hallo! Wie kann ich Ihnen bei Ihren Dokumenten helfen?", []),
        ("Bonjour ! Que voulez-vous savoir ?", []),
        ("你好！你想了解什么？", []),
        ("", []),
    ],
)
def test_find_facts_returns_new_names_and_numbers(reply: str, facts: list[str]) -> None:
    assert find_facts(reply, ["Tell me about the yard"]) == facts


def test_find_facts_ignores_repeated_names() -> None:
    messages = ["I am Anna, and the yard is from 1868.", "Trevandle & Ruske"]
    assert find_facts("Nice to meet you, Anna! It was Trevandle in 1868, then.", messages) == []
    assert find_facts("Nice to meet you, Anne!", messages) == ["Anne"]


@pytest.mark.parametrize(
    ("message", "subject"),
    [
        ("And was he a carpenter?", True),
        ("who founded the yard of the ferry in spring", True),
        ("Tell me about Ruske", True),
        ("in 1902", True),
        ("Hello! When was the yard founded?", True),
        ("Hello", False),
        ("hello, what can you do?", False),
        ("How are you?", False),
        ("thanks a lot", False),
        ("Good morning!", False),
        ("?", False),
    ],
)
def test_has_subject_needs_content_a_name_or_a_number(message: str, subject: bool) -> None:
    assert has_subject(message) is subject


@pytest.mark.parametrize(
    ("message", "command"), [("/help", True), ("/method auto", True), ("/", False), ("/etc/hosts", False)]
)
def test_is_command_is_a_word_after_a_slash(message: str, command: bool) -> None:
    assert is_command(message) is command


ASKED = "When was the shipyard of the ferry founded?"


@pytest.mark.parametrize(
    ("clarifying", "asked", "repeats"),
    [
        (ASKED, ASKED, True),
        (ASKED.upper().rstrip("?"), ASKED, True),
        (f"Do you mean: {ASKED}", ASKED, True),
        ("Are you asking when the shipyard of the ferry was founded?", ASKED, True),
        ("Could you please tell me when the ferry's shipyard was founded?", ASKED, True),
        ("When exactly was the shipyard of the ferry founded?", ASKED, True),
        ("What do you mean?", "What do you mean?", True),
        ("Wann wurde die Werft gegründet?", "wann wurde die werft gegrundet", True),
        ("Which ferry do you mean?", ASKED, False),
        ("Do you mean the Lady Morrable or the Varn?", ASKED, False),
        ("What do you mean by that?", "How old is it?", False),
        ("Built what?", "Who built it?", False),
        ("Which of the two?", "How old is it?", False),
    ],
)
def test_repeats_question_unless_it_has_a_new_choice(clarifying: str, asked: str, repeats: bool) -> None:
    assert repeats_question(clarifying, asked) is repeats


def test_already_clarified_includes_the_same_message_sent_again() -> None:
    back = clarification_message(AskedBack(question="Which one?"))
    turn = [HumanMessage("How old is it?"), back]
    assert already_clarified([*turn, HumanMessage("the yard")])
    later = [*turn, HumanMessage("the yard"), AIMessage("1868")]
    assert already_clarified([*later, HumanMessage("how old is it")])
    assert not already_clarified([*later, HumanMessage("How high is it?")])
    assert not already_clarified(turn[:1])
