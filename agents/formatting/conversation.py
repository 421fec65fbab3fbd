"""What was said before, as the roles see it that read a chat: the latest turns, bounded, oldest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sleuth.agents.formatting.steps import line

LATEST = 8
"""Turns that are shown; what was said before them does not help to understand the next message."""

LONGEST = 600
"""Characters shown of each turn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One message of a conversation."""

    speaker: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Heard:
    """The latest message, and what was said before it, oldest first."""

    question: str
    turns: tuple[Turn, ...]


def values(given: Heard) -> dict[str, str]:
    """The values of a prompt that reads a conversation."""
    return {"conversation": render(given.turns), "question": given.question}


def latest(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """As many of the turns as a prompt shows: so a prompt stays short however long a chat goes on."""
    return tuple(turns[-LATEST:])


def render(turns: Sequence[Turn]) -> str:
    """A line for each of the latest turns; says so where there is none."""
    return "\n".join(f"{turn.speaker.title()}: {_shown(turn.text)}" for turn in latest(turns)) or "(nothing yet)"


def _shown(text: str) -> str:
    told = line(text)
    return told if len(told) <= LONGEST else f"{told[:LONGEST].rstrip()} …"
