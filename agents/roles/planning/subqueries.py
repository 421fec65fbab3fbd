"""NO_RETRIEVAL, SUBQ or SUFFICIENT: whether to look something up, and what (RAS, section 3.1)."""

from dataclasses import dataclass
from typing import Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sleuth.agents.formatting import Facts, Numbers, Step, SubQuery
from sleuth.agents.formatting import facts as chain
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role, written_by

NO_RETRIEVAL: Final = "[NO_RETRIEVAL]"
SUBQ: Final = "[SUBQ]"
SUFFICIENT: Final = "[SUFFICIENT]"

_WRITTEN = {SUBQ: ("finding", "facts", "plan", "query"), SUFFICIENT: ("finding", "facts", "plan")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Bare:
    """The question, before anything was looked up."""

    question: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SoFar:
    """The question, what was known before, and the chain so far; `sources` holds the facts, best first."""

    question: str
    queries: tuple[SubQuery, ...]
    sources: tuple[Facts, ...]
    known: tuple[Step, ...] = ()


class Next(Output):
    """[SUBQ] has the next sub-query in `query`."""

    model_config = ConfigDict(json_schema_extra=written_by("plan", _WRITTEN))

    plan: Literal["[SUBQ]", "[SUFFICIENT]"]
    query: str = Field(default="", max_length=240)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.plan == SUBQ and not self.query.strip():
            raise ValueError(f"{SUBQ} needs the sub-query in 'query'")
        return self


class NextWithFinding(Next):
    """Also what the latest sub-query has found, and the numbers of the facts that say so."""

    finding: str = Field(default="", max_length=200)
    facts: Numbers = Field(default_factory=list)


def values(given: SoFar) -> dict[str, str]:
    """What is known so far, for a prompt."""
    return {
        "known": trajectory.render(given.known),
        "chain": chain.render(given.queries, given.sources),
        "question": given.question,
    }


BEGIN: Role[Bare, str] = Role(
    name="planner",
    prompt="planner/begin",
    input=Bare,
    output=str,
    render=lambda given: {"question": given.question},
    sampling=Sampling(max_tokens=16),
    choices=(NO_RETRIEVAL, SUBQ),
)

NEXT: Role[SoFar, Next] = Role(
    name="planner",
    prompt="planner/next",
    input=SoFar,
    output=Next,
    render=values,
    sampling=Sampling(max_tokens=256),
)

NEXT_WITH_FINDING: Role[SoFar, NextWithFinding] = Role(
    name="planner",
    prompt="planner/next_with_finding",
    input=SoFar,
    output=NextWithFinding,
    render=values,
    sampling=Sampling(max_tokens=384),
)
