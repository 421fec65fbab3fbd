"""What a simulated role says: a text, and how sure it sounds."""

import math
from dataclasses import dataclass

from pydantic import BaseModel

from sleuth.agents.model import Sampling, TokenLogprob
from sleuth.studio.simulation.request_view import RequestView


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedReply:
    """`perplexity` is that of the text's tokens; `yes` is P(yes) at the first of them."""

    text: str
    perplexity: float = 1.3
    yes: float | None = None

    def logprobs(self, sampling: Sampling) -> list[TokenLogprob] | None:
        """As a server gives them, where they were asked for: a token is a word with the space before it."""
        if not sampling.top_logprobs:
            return None
        if self.yes is not None:
            top = {"Yes": math.log(self.yes), "No": math.log(1 - self.yes)}
            return [TokenLogprob(token=self.text, logprob=top[self.text], top=top)]
        logprob = -math.log(self.perplexity)
        pieces = [word if at == 0 else f" {word}" for at, word in enumerate(self.text.split(" "))]
        return [TokenLogprob(token=piece, logprob=logprob, top={piece: logprob}) for piece in pieces]


def structured(output: BaseModel) -> SimulatedReply:
    """A structured reply."""
    return SimulatedReply(text=output.model_dump_json())


def plain_reply(view: RequestView, text: str, *, supported: bool) -> SimulatedReply:
    """A plain reply whose perplexity is drawn from that of supported answers, or of those that are not."""
    parameters, dice = view.simulation, view.chance("perplexity")
    if supported:
        drawn = parameters.supported_perplexity * math.exp(dice.gauss(0, parameters.supported_spread))
    else:
        drawn = parameters.unsupported_perplexity * math.exp(dice.gauss(0, parameters.unsupported_spread))
    return SimulatedReply(text=text, perplexity=max(1.01, drawn))


def yes_or_no(view: RequestView, *, true: bool | None) -> SimulatedReply:
    """Yes or no with its probability, either of them where it cannot be decided (None).

    An evaluator that is too sure of itself says yes to what is not so.
    """
    parameters, dice = view.simulation, view.chance("odds")
    sign = 1 if true or (true is False and view.errs("overconfident")) else 0 if true is None else -1
    odds = dice.gauss(sign * parameters.yes_odds, parameters.yes_spread)
    probability = min(max(1 / (1 + math.exp(-odds)), 1e-6), 1 - 1e-6)
    return SimulatedReply(text="Yes" if probability > 0.5 else "No", yes=probability)
