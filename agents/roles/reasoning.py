"""Roles that reason over evidence: RetroRAG, IRCoT and the paths of CRP-RAG."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from sleuth.agents.formatting import Evidence, Items, Quote, Step, escape_line, format_steps
from sleuth.agents.model import Sampling
from sleuth.agents.role import Input, Output, Role
from sleuth.agents.roles.inputs import QuestionInput, ReadInput, SourcesInput

# An answer with its reasons, and a second, freer one to compare it with (RetroRAG, "Answerer")

MAX_QUOTES = 5
"""The number of pieces of source evidence in the paper."""


class Reasoned(Output):
    """An answer, empty where there is none; `reason` explains how the evidence leads to it, or what is missing."""

    reason: str = Field(default="", max_length=800)
    citations: list[Quote] = Field(default_factory=list, max_length=MAX_QUOTES)
    answer: str = Field(max_length=400)


class Recalled(Output):
    """An answer with its reason where there is nothing to cite."""

    reason: str = Field(default="", max_length=800)
    answer: str = Field(max_length=400)


class Direct(Output):
    """An answer without reasons."""

    answer: str = Field(max_length=400)


REASON = Role("reasoner/reason", ReadInput, Reasoned, Sampling(max_tokens=768, temperature=0.01))
"""Answer from the evidence, with reasons."""

REASON_WITH_EXAMPLES = replace(REASON, prompt="reasoner/reason_with_examples")
"""Answer from the evidence, with reasons, as two examples do (few-shot chain of thought)."""

MONITOR = Role("reasoner/monitor", ReadInput, Direct, Sampling(max_tokens=160, temperature=1.0))
"""Answer from the evidence a second time, sampled freely."""

RECALL = Role("reasoner/recall", QuestionInput, Recalled, Sampling(max_tokens=512, temperature=0.01))
"""Answer without evidence, for the ablation of all evidence."""

GUESS = Role("reasoner/guess", QuestionInput, Direct, Sampling(max_tokens=160, temperature=1.0))
"""Answer without evidence a second time, sampled freely."""

# Entities, inferences and new queries (RetroRAG, "ELLERY")

MAX_ENTITIES, MAX_INFERENCES = 6, 5
"""Limits of lists: guided decoding must come to an end."""


class Entities(Output):
    """The people, places and things that the question is about."""

    entities: list[Annotated[str, Field(min_length=1, max_length=80)]] = Field(min_length=1, max_length=MAX_ENTITIES)


class InferInput(SourcesInput):
    """The question, its key entities, and the source evidence, best first."""

    entities: Annotated[tuple[str, ...], "; ".join]


class Inference(Output):
    """A statement that follows from the sources, the simple question that it answers, and its citations."""

    question: str = Field(min_length=1, max_length=240)
    claim: str = Field(min_length=1, max_length=240)
    citations: Evidence = Field(default_factory=list)


class Inferences(Output):
    """All inferences that the sources allow."""

    inferences: list[Inference] = Field(max_length=MAX_INFERENCES)


class AllInferences(Inferences):
    """The same without the limit of a small model."""

    inferences: list[Inference] = Field(max_length=6 * MAX_INFERENCES)


class RequeryInput(ReadInput):
    """The question, all that is known, and the reasons given with an answer that was rejected."""

    reason: Annotated[str, lambda text: text or "(none given)"]


class Requery(Output):
    """The next search query."""

    query: str = Field(min_length=1, max_length=240)


ENTITIES = Role("detective/entities", QuestionInput, Entities, Sampling(max_tokens=160))
"""Name the key entities of a question."""

INFER = Role("detective/infer", InferInput, Inferences, Sampling(max_tokens=1024))
"""Infer statements from the source evidence."""

INFER_ALL: Role[InferInput, Inferences] = Role(
    "detective/infer_all", InferInput, AllInferences, Sampling(max_tokens=2048)
)
"""Infer as many statements as the source evidence allows."""

REQUERY = Role("detective/requery", RequeryInput, Requery, Sampling(max_tokens=160))
"""Write the query for the evidence that is missing."""

# The next sentence of a chain of thought (IRCoT, section 3)


class ThinkInput(ReadInput):
    """The question, the passages collected so far, the steps of an earlier run, and the sentences so far."""

    thoughts: Items


THINK = Role("reasoner/think", ThinkInput, str, Sampling(max_tokens=128))
"""Write the next sentence. Plain text; the paper cuts the model's chain off after the first sentence."""

# Answers along paths of steps, merged into one (CRP-RAG, section 3.4)


class TakeStepInput(ReadInput):
    """One step, its knowledge, and the results of the steps before it."""

    step: str


class TakePathInput(ReadInput):
    """All the steps of a path with their knowledge, in order."""

    steps: Items


class Result(Output):
    """An answer; empty where neither knowledge nor earlier steps contain it."""

    answer: str = Field(default="", max_length=200)


@dataclass(frozen=True, kw_only=True, slots=True)
class PathAnswer:
    """The answer of one path, and its steps."""

    answer: str
    steps: tuple[Step, ...]


def _lines_of_reasoning(answers: Sequence[PathAnswer]) -> str:
    return "\n\n".join(
        f"Answer {at}: {escape_line(path.answer)}\n{format_steps(path.steps)}"
        for at, path in enumerate(answers, start=1)
    )


class IntegrateInput(Input):
    """A question and its answers along several paths."""

    question: str
    answers: Annotated[tuple[PathAnswer, ...], _lines_of_reasoning]


class Integrated(Output):
    """One answer made of several."""

    answer: str = Field(default="", max_length=600)


TAKE_STEP = Role("integrator/step", TakeStepInput, Result, Sampling(max_tokens=256, temperature=0.1))
"""Answer one step of a path."""

TAKE_LAST_STEP = replace(TAKE_STEP, prompt="integrator/last_step")
"""Answer the question with the last step of a path, or return no answer: a step may lead elsewhere."""

TAKE_PATH = Role("integrator/path", TakePathInput, Result, Sampling(max_tokens=256, temperature=0.1))
"""Answer the question along a whole path."""

INTEGRATE = Role("integrator/integrate", IntegrateInput, Integrated, Sampling(max_tokens=512, temperature=0.1))
"""Merge the answers of several paths."""
