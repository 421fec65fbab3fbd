"""Rewriting of a conversation's question as one that can be understood alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from langchain_core.messages import AnyMessage
from langgraph.func import entrypoint

from sleuth.agents.formatting import Turn
from sleuth.agents.model_calls.caller import CallRecord, ModelCaller
from sleuth.agents.roles.conversation import REWRITE, ConversationInput, Rewritten
from sleuth.graphs.chat.references import refers_back, resolve_references
from sleuth.graphs.core.context import Services
from sleuth.graphs.core.tracing import traced
from sleuth.graphs.persistence.thread import UNANSWERED
from sleuth.tools.storage.archive import Archive

_SPEAKERS: Final[dict[str, Literal["user", "assistant"]]] = {"human": "user", "ai": "assistant"}


@dataclass(frozen=True, kw_only=True, slots=True)
class RewrittenQuestion:
    """The rewritten question, with its model calls and warnings."""

    question: str
    calls: dict[str, CallRecord]
    warnings: list[str]


def as_conversation(messages: Sequence[AnyMessage], question: str) -> ConversationInput:
    """Return the last message as a question, with the turns before it; what ended without an answer is left out."""
    turns = (
        Turn(speaker=_SPEAKERS[message.type], text=message.text)
        for message in messages[:-1]
        if message.type in _SPEAKERS and message.text and message.additional_kwargs.get("status") not in UNANSWERED
    )
    return ConversationInput(question=question, turns=tuple(turns))


async def make_standalone(asking: ModelCaller | None, question: str, turns: Sequence[Turn]) -> str:
    """Rewrite a question with the context of its conversation; without a conversation it is unchanged, without a call.

    Without a model to ask, rules rewrite it, as they do with a pronoun that the model leaves. If the reply cannot be
    used, there is a warning.
    """
    if not turns:
        return question
    if asking is None:
        return resolve_references(question, turns)
    request = ConversationInput(question=question, turns=tuple(turns))
    loss = "Rules rewrite the question instead."
    made = await asking.ask_or(REWRITE, request, Rewritten.model_construct(question=question), loss)
    rewritten = made.question.strip() or question
    return resolve_references(rewritten, turns) if refers_back(rewritten) else rewritten


async def rewrite_question(
    question: str, turns: Sequence[Turn], *, services: Services, archive: Archive
) -> RewrittenQuestion:
    """Rewrite a question outside of any graph, for a server that receives a whole conversation; without checkpoints.

    Args:
        question: the latest message.
        turns: the earlier messages, oldest first.
        services: those of the runs.
        archive: stores the prompt; that of the store.

    Raises:
        ModelError: the model server cannot be used.
    """

    @entrypoint()
    async def rewrite(asked: str) -> RewrittenQuestion:
        asking = ModelCaller(services.model, archive, seed=asked)
        rewritten = await make_standalone(asking, asked, turns)
        return RewrittenQuestion(question=rewritten, calls=asking.calls, warnings=list(asking.warnings))

    made: Any = await rewrite.ainvoke(question, traced(None, services.tracing, texts=services.trace_texts))
    assert isinstance(made, RewrittenQuestion)
    return made
