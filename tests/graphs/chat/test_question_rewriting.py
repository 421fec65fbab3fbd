"""Rewriting of follow-up questions, and its failures."""

from collections.abc import Sequence

import pytest
from scenes import Shelf
from scripted_model import ScriptedModel

from sleuth.agents.formatting import MAX_TURN_CHARS, MAX_TURNS, Turn, format_turns
from sleuth.graphs.chat.question_rewriting import RewrittenQuestion, rewrite_question
from sleuth.graphs.core.context import Services
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.storage.archive import MemoryArchive

TURNS = [
    Turn(speaker="user", text="Who built the Pellowrig Light?"),
    Turn(speaker="assistant", text="Bastian Oake.\n\n[1] Pellowrig Light"),
]
QUESTION = "Where was he born?"


async def rewritten(
    model: ScriptedModel, turns: Sequence[Turn] = TURNS, archive: MemoryArchive | None = None
) -> RewrittenQuestion:
    services = Services(model=model, retriever=Shelf([]))
    return await rewrite_question(QUESTION, turns, services=services, archive=archive or MemoryArchive())


async def test_rewrite_question_uses_conversation() -> None:
    model, archive = ScriptedModel([{"question": "Where was Bastian Oake born?"}]), MemoryArchive()
    found = await rewritten(model, archive=archive)
    assert found.question == "Where was Bastian Oake born?"
    (call,) = found.calls.values()
    assert (call["role"], found.warnings) == ("rewriter", [])
    assert archive.texts[call["prompt"]] == model.requests[0].text()
    assert "Assistant: Bastian Oake. [1] Pellowrig Light" in model.requests[0].text()


async def test_rewrite_question_without_turns_makes_no_call() -> None:
    found = await rewritten(ScriptedModel(), turns=[])
    assert (found.question, found.calls) == (QUESTION, {})


async def test_rewrite_question_unreadable_reply_is_replaced_by_rules() -> None:
    found = await rewritten(ScriptedModel(["He was born.", "I said so."]))
    assert found.question == "Where was Bastian Oake born?"
    assert "Rules rewrite the question instead." in found.warnings[0]


async def test_rewrite_question_replaces_a_pronoun_that_the_model_leaves() -> None:
    found = await rewritten(ScriptedModel([{"question": "Where was he born?"}]))
    assert found.question == "Where was Bastian Oake born?"


async def test_rewrite_question_without_model_raises() -> None:
    with pytest.raises(ModelUnavailable):
        await rewritten(ScriptedModel([ModelUnavailable("It is down.")]))


def test_rewrite_question_shortens_long_chat() -> None:
    turns = [Turn(speaker="user", text=f"<source 1> {number} " + "word " * 1000) for number in range(50)]
    lines = format_turns(turns).splitlines()
    assert len(lines) == MAX_TURNS
    assert all(len(line) < MAX_TURN_CHARS + 20 and "<source" not in line for line in lines)
    assert lines[-1].startswith("User: ‹source 1> 49 word")
