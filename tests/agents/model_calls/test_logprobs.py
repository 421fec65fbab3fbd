import math

import pytest
from scripted_model import reply

from sleuth.agents.model import Reply, TokenLogprob, first_token_probability, perplexity


def token(text: str, p: float = 0.5, **top: float) -> TokenLogprob:
    return TokenLogprob(token=text, logprob=math.log(p), top={name: math.log(value) for name, value in top.items()})


def replied(*tokens: TokenLogprob, end: TokenLogprob | None = None) -> Reply:
    text = "".join(piece["token"] for piece in tokens)
    return reply(text, logprobs=[*tokens, *([end] if end else [])])


SPELLINGS = TokenLogprob(
    token="Yes",
    logprob=-1.0,
    top={text: math.log(p) for text, p in {"Yes": 0.3, " yes": 0.1, "NO": 0.1, "I": 0.4}.items()},
)


@pytest.mark.parametrize(
    ("answer", "probability", "warns"),
    [
        (replied(SPELLINGS), 0.8, False),
        (replied(token("No", No=0.2)), 0.0, False),
        (replied(token("Well", Well=0.9)), 0.5, True),
        (reply("yes"), 0.5, True),
    ],
    ids=["all spellings", "one label", "no label", "no log-probabilities"],
)
def test_first_token_probability_of_yes(answer: Reply, probability: float, warns: bool) -> None:
    found, warning = first_token_probability(answer)
    assert found == pytest.approx(probability)
    assert ("neither yes nor no" in str(warning)) is warns


def test_scores_skip_thoughts_and_leading_white_space() -> None:
    thought = [token("<think>"), token("no", 0.1, no=0.9), token("</think>"), token("\n\n", 0.2, no=1.0)]
    answer = replied(*thought, token("yes", 0.25, yes=0.9))
    assert first_token_probability(answer) == (1.0, None)
    assert perplexity(answer) == pytest.approx(4.0)


def test_scores_of_unfinished_thoughts_are_missing() -> None:
    answer = replied(token("<think>"), token("yes", yes=1.0))
    assert first_token_probability(answer)[0] == 0.5
    assert perplexity(answer) is None


def test_perplexity_excludes_only_the_end_token() -> None:
    tokens = token("a", 0.5), token(" b", 0.125)
    assert perplexity(replied(*tokens, end=token("<|im_end|>", 0.001))) == pytest.approx(4.0)
    assert perplexity(replied(*tokens, end=TokenLogprob(token="", logprob=-9.0, top={}))) == pytest.approx(4.0)
    assert perplexity({**replied(*tokens), "finish": "length"}) == pytest.approx(4.0)
