"""Sufficiency of a step's knowledge in CRP-RAG: the model's certainty of an answer from it alone (section 3.4)."""

import asyncio
from collections.abc import Container, Mapping

from typing_extensions import TypedDict

from sleuth.agents.model_calls import ModelCaller, perplexity
from sleuth.agents.roles.judging import VERIFY, VerifyInput, resampled_verify
from sleuth.graphs.core import Threshold, ask_or, choose_threshold
from sleuth.graphs.evidence import strip_marks
from sleuth.graphs.methods.crp_rag.reasoning_graph import Nodes
from sleuth.tools.errors import BadReply
from sleuth.tools.text import comparison_key


class Verification(TypedDict):
    """The answer from a step's knowledge alone, its perplexity (None: not measured), and if the knowledge suffices."""

    answer: str
    perplexity: float | None
    sufficient: bool


Given = Mapping[str, VerifyInput]

UNFITTED = Threshold(value=2.0, by="the default; `sleuth calibrate` fits one for the model")
"""The perplexity threshold for models without a fitted one; the paper names none."""


def perplexity_limit(given: float | None, fitted: Mapping[str, Threshold]) -> Threshold:
    """Return the perplexity threshold of this run."""
    return choose_threshold(given, fitted.get(VERIFY.prompt), UNFITTED)


async def measure_perplexity(given: Given, threshold: float, model: ModelCaller) -> dict[str, Verification]:
    """Answer each node from its knowledge, in parallel."""
    measured = await asyncio.gather(*(_measure(each, threshold, model) for each in given.values()))
    return dict(zip(given, measured, strict=True))


async def _measure(given: VerifyInput, threshold: float, model: ModelCaller) -> Verification:
    """Answer a node; its knowledge suffices if the answer's perplexity is below the threshold (equations 9 and 10)."""
    try:
        answer, reply = await model.ask_with_reply(VERIFY, given)
    except BadReply as error:
        model.warn(f"{error} The knowledge about {given.question!r} counts as insufficient.")
        return Verification(answer="", perplexity=None, sufficient=False)
    measured = perplexity(reply)
    sufficient = measured is not None and measured < threshold
    return Verification(answer=strip_marks(answer), perplexity=measured, sufficient=sufficient)


async def self_consistency(
    given: Given, verified: Mapping[str, Verification], samples: int, model: ModelCaller
) -> dict[str, Verification]:
    """Compare several further answers: the fallback for servers without log-probabilities."""
    if given:
        model.warn(f"no log-probabilities: knowledge suffices where most of {samples} samples agree")
    asks = (_agree(each, verified[key]["answer"], samples, model) for key, each in given.items())
    return dict(zip(given, await asyncio.gather(*asks), strict=True))


async def _agree(given: VerifyInput, answer: str, samples: int, model: ModelCaller) -> Verification:
    asks = (ask_or(model, resampled_verify(), given, "", "It counts as another answer.") for _ in range(samples))
    same = sum(_normalized(sample) == _normalized(answer) for sample in await asyncio.gather(*asks))
    return Verification(answer=answer, perplexity=None, sufficient=same * 2 > samples)


def describe_missing(nodes: Nodes, sufficient: Container[str], verified: Mapping[str, Verification]) -> str:
    """Return why no path can be answered, node by node, so that a person can add documents."""
    lines = [f"- {node['content']} ({_why(verified.get(key))})" for key, node in nodes.items() if key not in sufficient]
    return "\n".join(["No line of reasoning has all the knowledge that it needs. What is missing:", *lines])


def _why(checked: Verification | None) -> str:
    if checked is None:
        return "nothing was found about it"
    if checked["perplexity"] is None:
        return "no clear answer in what was found"
    return f"no sure answer in what was found: its perplexity is {checked['perplexity']:.1f}"


def _normalized(answer: str) -> str:
    return comparison_key(strip_marks(answer)).rstrip(".")
