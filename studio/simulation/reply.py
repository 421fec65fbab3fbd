"""Simulated replies with log-probabilities."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from sleuth.agents.model import Sampling, TokenLogprob
from sleuth.agents.role import Output
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


Handler = Callable[[RequestView], SimulatedReply | Output | str]
"""The reply of a role to a request: a structured one, or a text, with log-probabilities where they are used."""


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
