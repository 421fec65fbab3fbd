"""Scores from log-probabilities: the probability of a yes, and the perplexity of a reply."""

import math

from sleuth.agents.model import Reply, TokenLogprob
from sleuth.agents.thoughts import without_thoughts


def first_token_probability(reply: Reply) -> tuple[float, str | None]:
    """Return P(yes) among yes and no at the answer's first token, and a warning if neither is among the alternatives.

    The likeliest alternatives are summed, ignoring case and white space. Use plain-text replies: a choice constraint
    renormalizes the probabilities.
    """
    tokens = answer_tokens(reply)
    top = tokens[0]["top"] if tokens else {}
    p_yes, p_no = (
        sum(math.exp(logprob) for token, logprob in top.items() if token.strip().lower() == word)
        for word in ("yes", "no")
    )
    if p_yes + p_no == 0.0:
        return 0.5, "neither yes nor no among the likeliest first tokens: 0.5"
    return p_yes / (p_yes + p_no), None


def perplexity(reply: Reply) -> float | None:
    """Return exp of the mean negative log-probability of the answer's tokens; None without log-probabilities.

    Means below -700 count as -700, so that the result is finite.
    """
    tokens = answer_tokens(reply)
    if not tokens:
        return None
    return math.exp(min(700.0, -sum(token["logprob"] for token in tokens) / len(tokens)))


def answer_tokens(reply: Reply) -> list[TokenLogprob]:
    """Return the tokens after thoughts and leading white space, without the end-of-reply token."""
    tokens = reply["logprobs"] or []
    last = tokens[-1]["token"] if tokens else ""
    if reply["finish"] == "stop" and tokens and not (last and reply["text"].endswith(last)):
        tokens = tokens[:-1]
    written = "".join(token["token"] for token in tokens)
    answer = without_thoughts(written)
    begin = len(written) - len(answer.lstrip())
    answered: list[TokenLogprob] = []
    end = 0
    for token in tokens:
        end += len(token["token"])
        if end > begin:
            answered.append(token)
    return answered
