"""Messages that a chat does not look up, and questions that it may not ask back."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from sleuth.agents.roles.conversation import AskedBack
from sleuth.graphs.chat.messages import clarification_message
from sleuth.graphs.chat.small_talk import already_clarified, has_subject, is_command


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


def test_already_clarified_includes_the_same_message_sent_again() -> None:
    back = clarification_message(AskedBack(question="Which one?"))
    turn = [HumanMessage("How old is it?"), back]
    assert already_clarified([*turn, HumanMessage("the yard")])
    later = [*turn, HumanMessage("the yard"), AIMessage("1868")]
    assert already_clarified([*later, HumanMessage("how old is it")])
    assert not already_clarified([*later, HumanMessage("How high is it?")])
    assert not already_clarified(turn[:1])
