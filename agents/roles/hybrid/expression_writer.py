"""EXPRESS: an expression that helps to answer, from the numbers in what was found (CRAG's hybrid system, 4.3)."""

from dataclasses import dataclass

from pydantic import Field

from sleuth.agents.formatting import Source, line, listed
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role
from sleuth.tools.sources import names


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpressInput:
    """The question, when it is asked, and text and tables, best first."""

    question: str
    asked_at: str
    sources: tuple[Source, ...]


class Expression(Output):
    """Empty where nothing has to be worked out."""

    expression: str = Field(default="", max_length=300)


EXPRESS: Role[ExpressInput, Expression] = Role(
    name="calculator",
    prompt="calculator/express",
    input=ExpressInput,
    output=Expression,
    render=lambda given: {
        "functions": ", ".join(names()),
        "sources": listed(given.sources),
        "asked_at": line(given.asked_at),
        "question": given.question,
    },
    sampling=Sampling(max_tokens=160, temperature=0.7),
)
