"""ACT: the next call of the search tool, or the answer: the model's part in the loop of the `agent` baseline.

The choice is guided JSON rather than the server's own tool calls, which small models and many servers do not have.
"""

from dataclasses import dataclass
from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sleuth.agents.formatting import Quote, Source, Step, line, number
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role, written_by
from sleuth.agents.roles.reasoning import MAX_QUOTES


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchResult(Source):
    """A passage with the number of the search that found it first; a source, so it gives way in a small context."""

    search: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ActInput:
    """The question, what was handed over, and the searches so far with their passages, in the order of the searches."""

    question: str
    known: tuple[Step, ...]
    searches: tuple[str, ...]
    sources: tuple[SearchResult, ...]


class Action(Output):
    """A search has its `query`, an answer its `citations`; it is empty where there is none."""

    model_config = ConfigDict(
        json_schema_extra=written_by(
            "action", {"search": ("action", "query"), "answer": ("action", "answer", "citations")}
        )
    )

    action: Literal["search", "answer"]
    query: str = Field(default="", max_length=240)
    answer: str = Field(default="", max_length=400)
    citations: list[Quote] = Field(default_factory=list, max_length=MAX_QUOTES)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.action == "search" and not self.query.strip():
            raise ValueError("'search' needs what to search for in 'query'")
        return self


def _searched(given: ActInput) -> str:
    """Each search with the passages that none before it has found; their numbers go on from search to search."""
    if not given.searches:
        return "No search so far."
    return "\n".join(_block(given.sources, at, query) for at, query in enumerate(given.searches, start=1))


def _block(sources: tuple[SearchResult, ...], at: int, query: str) -> str:
    before = sum(source.search < at for source in sources)
    own = tuple(source for source in sources if source.search == at)
    return f"Search {at}: {line(query)}\n{number(own, first=before + 1) or '(nothing new)'}"


ACT: Role[ActInput, Action] = Role(
    name="actor",
    prompt="actor/act",
    input=ActInput,
    output=Action,
    render=lambda given: {
        "question": given.question,
        "known": trajectory.render(given.known),
        "searches": _searched(given),
    },
    sampling=Sampling(max_tokens=512),
)
