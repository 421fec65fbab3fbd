"""PLAN: the whole question broken into steps in one call (PAR-RAG, section 3.4)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from sleuth.agents.formatting import Step
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role

MAX_STEPS = 40
"""Longer plans are refused."""

_GUIDED_STEPS = 6
"""The most that a guided reply may list: questions of people need fewer."""

Action = Literal["Retrieve", "Answer"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanInput:
    """The question, and what is already known and need not be asked again."""

    question: str
    known: tuple[Step, ...] = ()


class OrderedStep(Output):
    """A sub-question; `Answer` steps follow from the steps before and need no search."""

    thought: str = Field(default="", max_length=120)
    question: str = Field(min_length=1, max_length=240)
    action: Action = "Retrieve"


class PlanStep(OrderedStep):
    """`needs` counts from 1: the earlier steps whose answers this one builds on."""

    needs: list[Annotated[int, Field(ge=1, le=MAX_STEPS)]] = Field(default_factory=list, max_length=MAX_STEPS)


def _steps(value: object) -> object:
    """A bare list of steps is a plan too: that is how the paper has it."""
    return {"steps": value} if isinstance(value, list) else value


_LENGTH = Field(min_length=1, max_length=MAX_STEPS, json_schema_extra={"maxItems": _GUIDED_STEPS})


class Plan(Output):
    """Steps that say what they need: only earlier ones; a question that was planned before is planned once."""

    steps: Annotated[list[PlanStep], _LENGTH]

    _accept_list = model_validator(mode="before")(_steps)

    @field_validator("steps")
    @classmethod
    def _tidy(cls, steps: list[PlanStep]) -> list[PlanStep]:
        places: dict[str, int] = {}
        renumbered: list[int] = []
        tidy: list[PlanStep] = []
        for step in steps:
            needs = sorted({renumbered[need - 1] for need in step.needs if need <= len(renumbered)})
            place = places.setdefault(step.question.strip().casefold(), len(tidy) + 1)
            renumbered.append(place)
            if place > len(tidy):
                tidy.append(step.model_copy(update={"needs": needs}))
        return tidy


class OrderedPlan(Output):
    """Steps to be taken one after the other, as in the paper."""

    steps: Annotated[list[OrderedStep], _LENGTH]

    _accept_list = model_validator(mode="before")(_steps)


def _values(given: PlanInput) -> dict[str, str]:
    return {"question": given.question, "known": trajectory.render(given.known)}


PLAN: Role[PlanInput, Plan] = Role(
    name="planner",
    prompt="planner/plan",
    input=PlanInput,
    output=Plan,
    render=_values,
    sampling=Sampling(max_tokens=1024),
)

PLAN_IN_ORDER: Role[PlanInput, OrderedPlan] = Role(
    name="planner",
    prompt="planner/plan_in_order",
    input=PlanInput,
    output=OrderedPlan,
    render=_values,
    sampling=Sampling(max_tokens=1024),
)
