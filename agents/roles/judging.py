"""Roles that judge: review, verification, evaluation and classification."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, cast, get_args

from pydantic import Field, StrictBool, StringConstraints

from sleuth.agents.formatting import Evidence, Fenced, Sources, Steps
from sleuth.agents.model import Sampling
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.role import Input, LabeledOutput, Role
from sleuth.agents.roles.inputs import QuestionInput, SourcesInput
from sleuth.agents.roles.planning import MAX_STEPS
from sleuth.tools.errors import BadReply
from sleuth.tools.text.normalization import single_line

# A draft checked against evidence that was searched with it (PAR-RAG, section 3.6)


class ReviewStepInput(SourcesInput):
    """A step's question, its draft, and the fine evidence, best first."""

    answer: str


class ReviewInput(ReviewStepInput):
    """Also the steps before, any of which the reviewer may blame."""

    trajectory: Steps


class StepReview(LabeledOutput):
    """The verdict: PASS keeps the draft, REVISED has `answer` and `citations`, UNCONFIDENT a new `question`."""

    label = "status"
    written: ClassVar = {
        "PASS": ("status",),
        "REVISED": ("status", "answer", "citations"),
        "UNCONFIDENT": ("status", "question"),
    }
    needed: ClassVar = {"REVISED": "answer", "UNCONFIDENT": "question"}

    status: Literal["PASS", "REVISED", "UNCONFIDENT"]
    answer: str = Field(default="", max_length=400)
    citations: Evidence = Field(default_factory=list)
    question: str = Field(default="", max_length=240)


class Review(StepReview):
    """A verdict that may blame an earlier step (ours): `earlier_step`, counted from 1, had a wrong answer."""

    written: ClassVar = StepReview.written | {"UNCONFIDENT": ("status", "question", "earlier_step")}

    earlier_step: int | None = Field(default=None, ge=1, le=MAX_STEPS)


REVIEW = Role("reviewer/review", ReviewInput, Review, Sampling(max_tokens=512))
"""Review a draft; an earlier step may be blamed (ours)."""

REVIEW_STEP = Role("reviewer/review_step", ReviewStepInput, StepReview, Sampling(max_tokens=512))
"""Review a draft by itself (appendix A.4.3)."""

# A step answered from its knowledge alone, for the model's confidence in it (CRP-RAG, section 3.4)


VERIFY = Role("verifier/verify", SourcesInput, str, Sampling(max_tokens=64, temperature=0.1, top_logprobs=1))
"""Answer a step; its score is the perplexity of the reply, exp of the mean negative log-probability per token.

The paper prints values below 1, which a perplexity cannot have. Plain text: guidance would change the probabilities.
"""


def resampled_verify() -> Role[SourcesInput, str]:
    """Return a role that samples the same answer freely, for servers without log-probabilities."""
    return replace(VERIFY, sampling=Sampling(max_tokens=64, temperature=1.0))


# Yes/no questions whose answers are read as probabilities of the first token. None is guided: a choice constraint would
# change the probabilities. The first five are RetroRAG's (equations 1 to 4); `auto` checks its answers with SUPPORT.

_ONE_TOKEN = Sampling(max_tokens=1, top_logprobs=20)


class ConsistencyInput(Input):
    """Two answers to one question, the second sampled more freely."""

    question: str
    answer: str
    second: str


class EvidenceInput(Input):
    """One piece of evidence, a passage or an inference, and the query that it should help to answer."""

    query: str
    sources: Sources


class RelevanceInput(Input):
    """An inference, the steps known without it, and the query that it should help to answer."""

    query: str
    claim: Fenced
    known: Steps


class AttributionInput(Input):
    """An inference and the passages that should contain it."""

    claim: Fenced
    sources: Sources


class DeclarativeInput(Input):
    """A question and a reply to it."""

    question: str
    answer: Fenced


class SupportInput(SourcesInput):
    """A question, an answer to it, and the passages that the answer cites."""

    answer: Fenced


CONSISTENCY = Role("evaluator/consistency", ConsistencyInput, str, _ONE_TOKEN)
"""Do the two answers agree?"""

DECLARATIVE = Role("evaluator/declarative", DeclarativeInput, str, _ONE_TOKEN)
"""Does the reply state an answer?"""

EVIDENCE = Role("evaluator/evidence", EvidenceInput, str, _ONE_TOKEN)
"""Does the evidence help?"""

RELEVANCE = Role("evaluator/relevance", RelevanceInput, str, _ONE_TOKEN)
"""Does the inference help?"""

ATTRIBUTION = Role("evaluator/attribution", AttributionInput, str, _ONE_TOKEN)
"""Do the passages contain the inference?"""

ASKS_ALL = Role("evaluator/asks_all", QuestionInput, str, _ONE_TOKEN)
"""Whether a question is about every document of a collection (`auto`)."""

SUPPORT = Role("evaluator/support", SupportInput, str, _ONE_TOKEN)
"""Do the citations support the answer?"""

# An answer compared with one that is known to be right (the Acc-LM of CRP-RAG's evaluation)

CORRECT, INCORRECT = "correct", "incorrect"


class JudgeInput(Input):
    """A question, the answers that count as right, and the answer given: the judge sees nothing else."""

    question: str
    answers: Annotated[tuple[str, ...], lambda answers: "\n".join(f"- {answer}" for answer in answers)]
    said: Fenced


JUDGE = Role("judge/judge", JudgeInput, str, Sampling(max_tokens=8), choices=(CORRECT, INCORRECT))
"""Compare the meaning of an answer with the right ones."""

# A question's attributes by demonstrations and a vote (CRAG's hybrid system, section 4.2)

STATIC, CHANGING, OPEN = "static", "dynamic", "open"

Domain = Literal["finance", "sports", "music", "movie", "open"]
"""The five domains of the CRAG benchmark."""

DOMAINS: tuple[Domain, ...] = get_args(Domain)


@dataclass(frozen=True, slots=True)
class Attributes:
    """A question's domain, and whether it is dynamic: real-time or fast-changing in the benchmark's terms."""

    domain: Domain
    dynamic: bool


@dataclass(frozen=True, slots=True)
class Example:
    """A question and what it was labeled."""

    question: Annotated[str, StringConstraints(pattern=r"\S")]
    domain: Domain
    dynamic: StrictBool


Demonstrations = tuple[tuple[Example, ...], tuple[Example, ...]]
"""Examples for the domain, and for static or dynamic."""


class ClassifyInput(Input):
    """A question, and questions that were labeled by hand."""

    question: str
    examples: tuple[Example, ...]


def _render_examples(input: ClassifyInput, asked: str, labels: Sequence[str]) -> dict[str, str]:
    blocks = [
        f"Question: {example.question}\n{asked}: {label}" for example, label in zip(input.examples, labels, strict=True)
    ]
    return {"examples": "\n\n".join(blocks), "question": single_line(input.question)}


_VOTE = Sampling(max_tokens=8, temperature=0.7)

DOMAIN = Role(
    "classifier/domain",
    ClassifyInput,
    str,
    _VOTE,
    choices=DOMAINS,
    render=lambda input: _render_examples(input, "Domain", [example.domain for example in input.examples]),
)
"""Name the domain of a question."""

DYNAMIC = Role(
    "classifier/dynamic",
    ClassifyInput,
    str,
    _VOTE,
    choices=(STATIC, CHANGING),
    render=lambda input: _render_examples(
        input, "Static or dynamic", [CHANGING if example.dynamic else STATIC for example in input.examples]
    ),
)
"""Decide whether the answer to a question changes over time."""


async def vote_on_attributes(
    model: ModelCaller, question: str, demonstrations: Demonstrations, *, samples: int
) -> Attributes:
    """Sample each attribute of a question several times, and return the majority; its usual value without a vote.

    Raises:
        ModelError: the server gave no usable reply.
    """
    of_domains, of_change = demonstrations
    domain, change = await asyncio.gather(
        _majority(model, DOMAIN, ClassifyInput(question=question, examples=of_domains), samples, usual=OPEN),
        _majority(model, DYNAMIC, ClassifyInput(question=question, examples=of_change), samples, usual=STATIC),
    )
    return Attributes(domain=cast(Domain, domain), dynamic=change == CHANGING)


async def _majority(
    model: ModelCaller, role: Role[ClassifyInput, str], input: ClassifyInput, samples: int, *, usual: str
) -> str:
    """Return the most frequent reply; ties go to the role's order."""

    async def sample() -> str:
        try:
            return await model.ask(role, input)
        except BadReply as error:
            model.warn(f"{error} The vote continues without this sample.")
            return ""

    votes = await asyncio.gather(*(sample() for _ in range(samples)))
    if not any(votes):
        model.warn(f"No vote can be read. The question counts as {usual}.")
        return usual
    return max(role.choices or (), key=votes.count)
