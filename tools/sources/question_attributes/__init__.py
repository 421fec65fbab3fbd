"""Attributes of a question: its domain, and whether its answer changes with time (CRAG's hybrid system, 4.2)."""

from dataclasses import dataclass
from typing import Literal, get_args

Domain = Literal["finance", "sports", "music", "movie", "open"]
"""The five domains of the CRAG benchmark."""

DOMAINS: tuple[Domain, ...] = get_args(Domain)

FAST = frozenset({"real-time", "fast-changing"})
"""What the benchmark calls questions that count as dynamic; those that are slow-changing or static count as static."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """A question's domain, and whether it is dynamic: real-time or fast-changing in the benchmark's terms."""

    domain: Domain
    dynamic: bool
