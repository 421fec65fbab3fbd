"""REWRITE: the latest message of a chat as a question that can be understood without the rest of it."""

from pydantic import Field

from sleuth.agents.formatting import Heard, values
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role


class Rewritten(Output):
    """The question to ask instead."""

    question: str = Field(min_length=1, max_length=500)


REWRITE: Role[Heard, Rewritten] = Role(
    name="rewriter",
    prompt="rewriter/rewrite",
    input=Heard,
    output=Rewritten,
    render=values,
    sampling=Sampling(max_tokens=200),
)
