"""What kind of question is asked: its domain, and whether its answer changes with time (CRAG's hybrid system, 4.2)."""

from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

Domain = Literal["finance", "sports", "music", "movie", "open"]
"""The five domains of the CRAG benchmark."""

DOMAINS: tuple[Domain, ...] = get_args(Domain)

FAST = frozenset({"real-time", "fast-changing"})
"""What the benchmark calls questions that count as dynamic; those that are slow-changing or static count as static."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a question is about, and whether it is dynamic: real-time or fast-changing in the benchmark's words.

    The leads say how far the chosen value is ahead of the next one: as a share of votes, or in an SVM's decision
    values. Leads of different predictors cannot be compared.
    """

    domain: Domain
    dynamic: bool
    domain_lead: float = field(default=1.0, compare=False)
    dynamic_lead: float = field(default=1.0, compare=False)


class Predictor(Protocol):
    """Tells a question's attributes from its words alone."""

    async def predict(self, question: str) -> Attributes:
        """The attributes of one question."""
        ...
