"""What a role says about where an answer stands; whether it really stands there is checked by the caller."""

from typing import Annotated

from pydantic import Field

from sleuth.agents.role import Output


class Quote(Output):
    """Words of a numbered source; `source` counts from 1 and may be wrong."""

    source: int = Field(ge=1, le=999)
    quote: str = Field(max_length=240)


Quotes = Annotated[list[Quote], Field(max_length=5)]
"""Few quotes: guided decoding must come to an end."""

Evidence = Annotated[list[Quote], Field(max_length=5, json_schema_extra={"minItems": 1})]
"""A guided reply has at least one; a reply that has none is read all the same."""
