"""Whether knowledge suffices for a step of CRP-RAG: how sure the model is of an answer from it alone (section 3.4)."""

import asyncio
from collections.abc import Container, Mapping

from typing_extensions import TypedDict

from sleuth.agents.model_calls import Desk, perplexity
from sleuth.agents.roles.judging import VERIFY, VerifyInput, again
from sleuth.graphs.core import Threshold, ask_or, chosen
from sleuth.graphs.evidence import clean
from sleuth.graphs.methods.crp_rag.reasoning_graph import Nodes
from sleuth.tools.errors import BadReply
from sleuth.tools.text import comparison_key


class Verification(TypedDict):
    """The answer from a step's knowledge alone, its perplexity (None: not measured), and whether that is enough."""

    answer: str
    perplexity: float | None
    sufficient: bool


Given = Mapping[str, VerifyInput]

UNFITTED = Threshold(value=2.0, by="the default; `sleuth calibrate` fits one for the model")
"""What perplexity has to stay below, for models that nothing was fitted for: the paper names no threshold."""


def limit_of(given: float | None, fitted: Mapping[str, Threshold]) -> Threshold:
    """What perplexity has to stay below in this run."""
    return chosen(given, fitted.get(VERIFY.prompt), UNFITTED)


async def measure(given: Given, threshold: float, asking: Desk) -> dict[str, Verification]:
    """Each node answered from its knowledge, side by side."""
    measured = await asyncio.gather(*(_measure(each, threshold, asking) for each in given.values()))
    return dict(zip(given, measured, strict=True))


async def _measure(given: VerifyInput, threshold: float, asking: Desk) -> Verification:
    """Sufficient where the answer's perplexity lies below the threshold (equations 9 and 10)."""
    try:
        answer, reply = await asking.consult(VERIFY, given)
    except BadReply as error:
        asking.warn(f"{error} What is known about {given.question!r} counts as insufficient.")
        return Verification(answer="", perplexity=None, sufficient=False)
    measured = perplexity(reply)
    sufficient = measured is not None and measured < threshold
    return Verification(answer=clean(answer), perplexity=measured, sufficient=sufficient)


async def agree(
    given: Given, verified: Mapping[str, Verification], samples: int, asking: Desk
) -> dict[str, Verification]:
    """The fall-back where the server gives no log-probabilities: most of several further answers are the same."""
    if given:
        asking.warn(f"no log-probabilities: knowledge suffices where most of {samples} samples agree")
    asks = (_agree(each, verified[key]["answer"], samples, asking) for key, each in given.items())
    return dict(zip(given, await asyncio.gather(*asks), strict=True))


async def _agree(given: VerifyInput, answer: str, samples: int, asking: Desk) -> Verification:
    asks = (ask_or(asking, again(), given, "", "It counts as another answer.") for _ in range(samples))
    same = sum(_bare(sample) == _bare(answer) for sample in await asyncio.gather(*asks))
    return Verification(answer=answer, perplexity=None, sufficient=same * 2 > samples)


def missing(nodes: Nodes, sufficient: Container[str], verified: Mapping[str, Verification]) -> str:
    """Why no path can be answered from, node by node, so that a person knows what to add."""
    lines = [f"- {node['content']} ({_why(verified.get(key))})" for key, node in nodes.items() if key not in sufficient]
    return "\n".join(["No line of reasoning has all the knowledge that it needs. What is missing:", *lines])


def _why(checked: Verification | None) -> str:
    if checked is None:
        return "nothing was found about it"
    if checked["perplexity"] is None:
        return "no clear answer in what was found"
    return f"no sure answer in what was found: its perplexity is {checked['perplexity']:.1f}"


def _bare(answer: str) -> str:
    return comparison_key(clean(answer)).rstrip(".")
