"""Simulated replies: their text, their log-probabilities and the usage that a server would report."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from sleuth.agents.model import Message, Sampling, TokenLogprob
from sleuth.agents.role import Output
from sleuth.studio.simulation.parameters import Simulation
from sleuth.studio.simulation.request_view import RequestView


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedReply:
    """A text, the perplexity of its tokens, and P(yes) at the first of them."""

    text: str
    perplexity: float = 1.3
    yes: float | None = None

    def logprobs(self, sampling: Sampling) -> list[TokenLogprob] | None:
        """Return the log-probabilities that a server would give: a token is a word with the space before it."""
        if not sampling.top_logprobs:
            return None
        if self.yes is not None:
            top = {"Yes": math.log(self.yes), "No": math.log(1 - self.yes)}
            return [TokenLogprob(token=self.text, logprob=top[self.text], top=top)]
        logprob = -math.log(self.perplexity)
        pieces = [word if at == 0 else f" {word}" for at, word in enumerate(self.text.split(" "))]
        return [TokenLogprob(token=piece, logprob=logprob, top={piece: logprob}) for piece in pieces]


Handler = Callable[[RequestView], SimulatedReply]


def structured_reply(output: Output) -> SimulatedReply:
    """Return a structured reply."""
    return SimulatedReply(text=output.model_dump_json())


def plain_reply(view: RequestView, text: str, *, supported: bool) -> SimulatedReply:
    """Return a plain reply with a perplexity sampled from that of supported or of unsupported answers."""
    parameters, rng = view.simulation, view.rng("perplexity")
    if supported:
        perplexity = parameters.supported_perplexity * math.exp(rng.gauss(0, parameters.supported_spread))
    else:
        perplexity = parameters.unsupported_perplexity * math.exp(rng.gauss(0, parameters.unsupported_spread))
    return SimulatedReply(text=text, perplexity=max(1.01, perplexity))


def yes_or_no(view: RequestView, *, true: bool | None) -> SimulatedReply:
    """Return yes or no with its probability, either of them if it cannot be decided (None).

    An overconfident evaluator answers yes where no is right.
    """
    parameters, rng = view.simulation, view.rng("odds")
    sign = 1 if true or (true is False and view.errs("overconfident")) else 0 if true is None else -1
    odds = rng.gauss(sign * parameters.yes_odds, parameters.yes_spread)
    probability = min(max(1 / (1 + math.exp(-odds)), 1e-6), 1 - 1e-6)
    return SimulatedReply(text="Yes" if probability > 0.5 else "No", yes=probability)


# Usage

CHARS_PER_TOKEN = 5
"""A word counts as one token per five characters or part of them: about 1.3 tokens per English word."""

_BLOCK = 16
"""Words of a cached block; servers cache prompts in blocks too."""

_TEMPLATE = 4
"""Tokens that a chat template adds to each message."""


def count_tokens(text: str) -> int:
    """Return the tokens of a text; two texts together have as many as each alone."""
    return sum(-(-len(word) // CHARS_PER_TOKEN) for word in text.split())


def count_prompt_tokens(messages: tuple[Message, ...]) -> int:
    """Return the tokens of a prompt with those of a chat template."""
    return sum(count_tokens(message["content"]) + _TEMPLATE for message in messages)


class UsageMeter:
    """Counter of the tokens of one run; the beginning that prompts have in common is cached.

    The cached tokens of all calls together do not depend on the order of the calls.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._seen: set[int] = set()

    def cached(self, messages: tuple[Message, ...]) -> int:
        """Return the tokens at the prompt's beginning that are in the cache, and add the prompt to the cache."""
        text = " ".join(message["content"] for message in messages).split()
        mark, cached = 0, 0
        for start in range(0, len(text) - _BLOCK + 1, _BLOCK):
            block = text[start : start + _BLOCK]
            mark = hash((mark, *block))
            if mark in self._seen:
                cached += count_tokens(" ".join(block))
            self._seen.add(mark)
        return cached

    def seconds(self, new: int, written: int) -> float:
        """Return the seconds to read the tokens that are not cached and to write the reply, on a virtual clock."""
        return round(new / self._simulation.prefill + written / self._simulation.decode, 4)
