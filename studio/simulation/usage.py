"""What a call would have cost: tokens, those of them that a prefix cache would hold, and seconds on a virtual clock."""

from sleuth.agents.model import Message
from sleuth.studio.simulation.parameters import Simulation

CHARS_PER_TOKEN = 5
"""A word is one token for each five characters begun: about 1.3 tokens per English word."""

_BLOCK = 16
"""Words; servers, too, keep prompts in blocks."""

_TEMPLATE = 4
"""Tokens around each message."""


def tokens(text: str) -> int:
    """Tokens of a text; of two texts together as many as of each."""
    return sum(-(-len(word) // CHARS_PER_TOKEN) for word in text.split())


def prompt_tokens(messages: tuple[Message, ...]) -> int:
    """Tokens of a prompt with what a chat template adds."""
    return sum(tokens(message["content"]) + _TEMPLATE for message in messages)


class UsageMeter:
    """Counts the calls of one run; what they have in common at their beginning is cached.

    The cached tokens of all calls together do not depend on the order of the calls.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._seen: set[int] = set()

    def cached(self, messages: tuple[Message, ...]) -> int:
        """Tokens of the prompt's beginning that an earlier prompt had too; the prompt counts as sent from now on."""
        text = " ".join(message["content"] for message in messages).split()
        mark, cached = 0, 0
        for start in range(0, len(text) - _BLOCK + 1, _BLOCK):
            block = text[start : start + _BLOCK]
            mark = hash((mark, *block))
            if mark in self._seen:
                cached += tokens(" ".join(block))
            self._seen.add(mark)
        return cached

    def seconds(self, new: int, written: int) -> float:
        """Reading the tokens that are not cached, and writing the reply, rounded as what is measured."""
        return round(new / self._simulation.prefill + written / self._simulation.decode, 4)
