"""TAKE_STEP, TAKE_LAST_STEP, TAKE_PATH and INTEGRATE: answers along paths of steps, made one (CRP-RAG, section 3.4)."""

from dataclasses import dataclass, replace

from pydantic import Field

from sleuth.agents.formatting import Source, Step, number
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role


@dataclass(frozen=True, kw_only=True, slots=True)
class TakeStepInput:
    """One step, its knowledge, and what the steps before it have found."""

    question: str
    step: str
    known: tuple[Step, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TakePathInput:
    """All the steps of a path with their knowledge, in order."""

    question: str
    steps: tuple[str, ...]
    known: tuple[Step, ...]
    sources: tuple[Source, ...]


class Result(Output):
    """Empty where neither knowledge nor earlier steps tell."""

    answer: str = Field(default="", max_length=200)


@dataclass(frozen=True, kw_only=True, slots=True)
class PathAnswer:
    """What one path has come to, and by which steps."""

    answer: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class IntegrateInput:
    """A question and its answers along several paths."""

    question: str
    answers: tuple[PathAnswer, ...]


class Integrated(Output):
    """One answer made of several."""

    answer: str = Field(default="", max_length=600)


def _lines_of_reasoning(answers: tuple[PathAnswer, ...]) -> str:
    return "\n\n".join(
        f"Answer {at}: {trajectory.line(each.answer)}\n{trajectory.render(each.steps)}"
        for at, each in enumerate(answers, start=1)
    )


TAKE_STEP: Role[TakeStepInput, Result] = Role(
    name="integrator",
    prompt="integrator/step",
    input=TakeStepInput,
    output=Result,
    render=lambda given: {
        "sources": number(given.sources),
        "question": given.question,
        "known": trajectory.render(given.known),
        "step": given.step,
    },
    sampling=Sampling(max_tokens=256, temperature=0.1),
)

TAKE_LAST_STEP: Role[TakeStepInput, Result] = replace(TAKE_STEP, prompt="integrator/last_step")
"""Where a path ends its result is the answer to the question, or there is none: a step may lead somewhere else."""

TAKE_PATH: Role[TakePathInput, Result] = Role(
    name="integrator",
    prompt="integrator/path",
    input=TakePathInput,
    output=Result,
    render=lambda given: {
        "sources": number(given.sources),
        "question": given.question,
        "known": trajectory.render(given.known),
        "steps": trajectory.listed(given.steps),
    },
    sampling=Sampling(max_tokens=256, temperature=0.1),
)

INTEGRATE: Role[IntegrateInput, Integrated] = Role(
    name="integrator",
    prompt="integrator/integrate",
    input=IntegrateInput,
    output=Integrated,
    render=lambda given: {"question": given.question, "answers": _lines_of_reasoning(given.answers)},
    sampling=Sampling(max_tokens=512, temperature=0.1),
)
