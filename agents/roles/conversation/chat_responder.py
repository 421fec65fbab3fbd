"""REPLY and ASK_BACK: what a chat says by itself, where there is nothing to look up or it is not clear what."""

from typing import Annotated

from pydantic import Field

from sleuth.agents.formatting import Heard, values
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role


class AskedBack(Output):
    """A question to the person, and replies to choose from."""

    question: str = Field(min_length=1, max_length=300)
    options: list[Annotated[str, Field(min_length=1, max_length=120)]] = Field(default_factory=list, max_length=4)


REPLY: Role[Heard, str] = Role(
    name="host",
    prompt="host/reply",
    input=Heard,
    output=str,
    render=values,
    sampling=Sampling(max_tokens=120),
)

ASK_BACK: Role[Heard, AskedBack] = Role(
    name="host",
    prompt="host/ask_back",
    input=Heard,
    output=AskedBack,
    render=values,
    sampling=Sampling(max_tokens=240),
)
