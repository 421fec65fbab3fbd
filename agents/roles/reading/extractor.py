"""EXTRACT: the facts of one passage as triples (RAS, section 3.2)."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, model_validator

from sleuth.agents.formatting import Source, number
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role

MOST = 16
"""The most triples that a guided reply may list: a passage of usual length holds fewer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractInput:
    """One passage."""

    sources: tuple[Source, ...]


class Triple(Output):
    """A fact that can be read alone: entities as the passage writes them."""

    subject: str = Field(max_length=100)
    predicate: str = Field(max_length=80)
    object: str = Field(max_length=160)


def _triples(value: object) -> object:
    """A bare list is taken too."""
    return {"triples": value} if isinstance(value, list) else value


class Extraction(Output):
    """Everything that a passage says, as triples; none where it says nothing."""

    triples: Annotated[list[Triple], Field(max_length=4 * MOST, json_schema_extra={"maxItems": MOST})]

    _accept_list = model_validator(mode="before")(_triples)


EXTRACT: Role[ExtractInput, Extraction] = Role(
    name="extractor",
    prompt="extractor/extract",
    input=ExtractInput,
    output=Extraction,
    render=lambda given: {"sources": number(given.sources)},
    sampling=Sampling(max_tokens=1024),
)
