"""REWRITE: the latest message of a chat as a question that can be understood without the rest of it."""

from dataclasses import dataclass

from pydantic import Field

from sleuth.agents.conversation import Turn, render
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteInput:
    """The latest message, and what was said before it, oldest first."""

    question: str
    turns: tuple[Turn, ...]


class Rewritten(Output):
    """The question to ask instead."""

    question: str = Field(min_length=1, max_length=500)


REWRITE: Role[RewriteInput, Rewritten] = Role(
    name="rewriter",
    prompt="rewriter/rewrite",
    input=RewriteInput,
    output=Rewritten,
    render=lambda given: {"conversation": render(given.turns), "question": given.question},
    sampling=Sampling(max_tokens=200),
)
