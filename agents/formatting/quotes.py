"""What a role says about where an answer stands; whether it really stands there is checked by the caller."""

from typing import Annotated

from pydantic import Field

from sleuth.agents.role import Output


class Quote(Output):
    """Words of a numbered source; `source` counts from 1 and may be wrong."""

    source: int = Field(ge=1, le=999)
    quote: str = Field(max_length=240)


MOST = 3

Quotes = Annotated[list[Quote], Field(max_length=MOST)]
"""Few quotes: guided decoding must come to an end, and an answer of few words needs no more."""

Evidence = Annotated[list[Quote], Field(max_length=MOST, json_schema_extra={"minItems": 1})]
"""A guided reply has at least one; a reply that has none is read all the same."""
