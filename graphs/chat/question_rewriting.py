"""A question asked in a conversation, made into one that can be understood alone, before any method sees it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.func import entrypoint

from sleuth.agents.formatting import Turn, latest_turns
from sleuth.agents.model import Model
from sleuth.agents.model_calls import CallRecord, ModelCaller
from sleuth.agents.roles.conversation import REWRITE, ConversationInput, Rewritten
from sleuth.graphs.core import ask_or
from sleuth.tools.settings import Tracing
from sleuth.tools.storage import Archive
from sleuth.tools.tracing import traced

_LOSS = "The question is asked as it was written, without the conversation."


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewriting:
    """The question to ask, and what it took to know it."""

    question: str
    calls: dict[str, CallRecord]
    warnings: list[str]


async def standalone(asking: ModelCaller, question: str, turns: Sequence[Turn]) -> str:
    """The question with what the conversation tells in it; without a conversation as it is, and no model call.

    Where the reply cannot be used the question stays as it is, with a warning at the desk.
    """
    if not turns:
        return question
    given = ConversationInput(question=question, turns=latest_turns(turns))
    made = await ask_or(asking, REWRITE, given, Rewritten.model_construct(question=question), _LOSS)
    return made.question.strip() or question


async def rewritten(
    question: str, turns: Sequence[Turn], *, model: Model, archive: Archive, tracing: Tracing = "off"
) -> Rewriting:
    """The same outside of any graph, for a server that is sent a whole conversation; nothing of it is checkpointed.

    Args:
        question: the latest message.
        turns: what was said before it, oldest first.
        model: of `Services`.
        archive: keeps the prompt; that of the store.
        tracing: of `Services`.

    Raises:
        ModelError: the model server cannot be used.
    """

    @entrypoint()
    async def rewrite(asked: str) -> Rewriting:
        asking = ModelCaller(model, archive, seed=asked)
        found = await standalone(asking, asked, turns)
        return Rewriting(question=found, calls=asking.calls, warnings=list(asking.warnings))

    made: Any = await rewrite.ainvoke(question, traced(None, tracing))
    assert isinstance(made, Rewriting)
    return made
