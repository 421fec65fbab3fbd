"""ROUTE: what the latest message of a chat asks of us."""

from typing import Final, Literal

from sleuth.agents.formatting import Heard, values
from sleuth.agents.model import Sampling
from sleuth.agents.role import Role

Kind = Literal["question", "follow-up", "ambiguous", "small talk"]

KINDS: Final[tuple[Kind, ...]] = ("question", "follow-up", "ambiguous", "small talk")


ROUTE: Role[Heard, str] = Role(
    name="router",
    prompt="router/route",
    input=Heard,
    output=str,
    render=values,
    sampling=Sampling(max_tokens=8),
    choices=KINDS,
)
