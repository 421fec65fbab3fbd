"""Roles that decide what to look up next."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, StringConstraints, field_validator

from sleuth.agents.formatting import (
    FactNumbers,
    Facts,
    Items,
    Quote,
    Source,
    Steps,
    SubQuery,
    escape_line,
    format_facts,
    format_sources,
    format_steps,
)
from sleuth.agents.model import Sampling
from sleuth.agents.role import Input, LabeledOutput, Output, Role
from sleuth.agents.roles.inputs import QuestionInput, StepsInput
from sleuth.agents.roles.reasoning import MAX_QUOTES

# A plan of the whole question in one call (PAR-RAG, section 3.4)

MAX_STEPS = 40
"""The longest plan that is accepted."""

_GUIDED_STEPS = 6
"""Ours: the most steps that a guided reply may list; real questions need fewer."""


class OrderedStep(Output):
    """A sub-question (section 3.4) with its action (appendix A.4.1): ours is that `Answer` steps need no search."""

    thought: str = Field(default="", max_length=120)
    question: str = Field(min_length=1, max_length=240)
    action: Literal["Retrieve", "Answer"] = "Retrieve"


class PlanStep(OrderedStep):
    """A sub-question with the earlier steps whose answers it builds on (ours); `needs` counts from 1."""

    needs: list[Annotated[int, Field(ge=1, le=MAX_STEPS)]] = Field(default_factory=list, max_length=MAX_STEPS)


_LENGTH = Field(min_length=1, max_length=MAX_STEPS, json_schema_extra={"maxItems": _GUIDED_STEPS})


class Plan(Output):
    """Steps with their dependencies: only on earlier steps; a repeated question is kept once."""

    steps: Annotated[list[PlanStep], _LENGTH]

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


PLAN = Role("planner/plan", StepsInput, Plan, Sampling(max_tokens=1024))
"""Break the question into steps with their dependencies (ours)."""

PLAN_IN_ORDER = Role("planner/plan_in_order", StepsInput, OrderedPlan, Sampling(max_tokens=1024))
"""Break the question into steps that follow each other (appendix A.4.1)."""

# The next step's question, made unambiguous by the answers that it builds on (PAR-RAG, section 3.5)


class RefineInput(Input):
    """The next question, the steps that it builds on, and the question that all steps serve."""

    question: str
    answers: Steps
    original: str


class Refined(Output):
    """The question to ask instead."""

    question: str = Field(min_length=1, max_length=240)


REFINE = Role("refiner/refine", RefineInput, Refined, Sampling(max_tokens=160))
"""Rewrite a step's question with the answers that it builds on (appendix A.4.2)."""

# Steps of a reasoning graph (CRP-RAG, section 3.2)

StepText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]


class ExpandInput(StepsInput):
    """The question, earlier knowledge, and the steps that lead to the place where the next one is needed."""

    steps: Items


class NextStep(Output):
    """A step; `final` if nothing comes after it."""

    step: StepText
    final: bool = False


class FuseInput(Input):
    """The question, and similar steps toward its answer."""

    question: str
    steps: Items


class Fused(Output):
    """The step that replaces similar ones."""

    step: StepText


EXPAND = Role("expander/expand", ExpandInput, NextStep, Sampling(max_tokens=160, temperature=0.8))
"""Sample one possible next step of a line of reasoning."""

EXPAND_FREELY = replace(EXPAND, prompt="expander/expand_freely")
"""The same; the step may also be an explanation, a comparison or a calculation."""


class Rewritten(Output):
    """The question with everything that it asks for spelled out."""

    question: StepText


REWRITE_QUESTION = Role("expander/rewrite", StepsInput, Rewritten, Sampling(max_tokens=200, temperature=0.8))
"""Rewrite the question for a search, in place of a reasoning graph (section 5.5)."""

FUSE = Role("fuser/fuse", FuseInput, Fused, Sampling(max_tokens=200, temperature=0.1))
"""Merge similar steps into one."""

# Follow-up questions (Self-Ask, section 3)


class FollowUp(LabeledOutput):
    """With "Yes" the next `question`, with "No" the final `answer`, empty where there is none."""

    label = "follow_up"
    written: ClassVar = {"Yes": ("follow_up", "question"), "No": ("follow_up", "answer")}
    needed: ClassVar = {"Yes": "question"}

    follow_up: Literal["Yes", "No"]
    question: str = Field(default="", max_length=240)
    answer: str = Field(default="", max_length=400)


FOLLOW_UP = Role("planner/follow_up", StepsInput, FollowUp, Sampling(max_tokens=256))
""""Are follow-up questions needed here?": write the next one, or the final answer."""

# The loop of the `agent` baseline. Guided JSON rather than tool calls, which small models and many servers lack.


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchResult(Source):
    """A passage with the number of the search that found it first; a source, so it is dropped in a small context."""

    search: int


class ActInput(StepsInput):
    """The question, the steps of an earlier run, and the searches so far with their passages, in the same order."""

    searches: tuple[str, ...]
    sources: tuple[SearchResult, ...]


class _Acted(LabeledOutput):
    """The parts of an action, empty where they do not belong to it."""

    query: str = Field(default="", max_length=240)
    answer: str = Field(default="", max_length=400)
    citations: list[Quote] = Field(default_factory=list, max_length=MAX_QUOTES)


class Action(_Acted):
    """A search with its `query`, or an answer with its `citations`, empty where there is none."""

    label = "action"
    written: ClassVar = {"search": ("action", "query"), "answer": ("action", "answer", "citations")}
    needed: ClassVar = {"search": "query"}

    action: Literal["search", "answer"]


def _searches(input: ActInput) -> dict[str, str]:
    """Return each search with the passages that it found first; their numbers continue from search to search."""
    blocks: list[str] = []
    first = 1
    for at, query in enumerate(input.searches, start=1):
        sources = [source for source in input.sources if source.search == at]
        blocks.append(f"Search {at}: {escape_line(query)}\n{format_sources(sources, first=first) or '(nothing new)'}")
        first += len(sources)
    searches = "\n".join(blocks) or "No search so far."
    return {"question": input.question, "known": format_steps(input.known), "searches": searches}


ACT = Role("actor/act", ActInput, Action, Sampling(max_tokens=512), render=_searches)
"""Choose the next search, or answer."""


class ToolAction(_Acted):
    """A search with its `query`, a `source` to read on from, or an answer, as in `Action`."""

    label = "action"
    written: ClassVar = {
        "keyword": ("action", "query"),
        "semantic": ("action", "query"),
        "read": ("action", "source"),
        "answer": ("action", "answer", "citations"),
    }
    needed: ClassVar = {"keyword": "query", "semantic": "query", "read": "source"}

    action: Literal["keyword", "semantic", "read", "answer"]
    source: int = Field(default=0, ge=0, le=999)


ACT_WITH_TOOLS = Role("actor/act_with_tools", ActInput, ToolAction, Sampling(max_tokens=512), render=_searches)
"""Choose one of three tools (A-RAG: Du et al., 2026, section 3), or answer."""

# Whether to look something up, and what (RAS, section 3.1)

NO_RETRIEVAL: Final = "[NO_RETRIEVAL]"
SUBQ: Final = "[SUBQ]"
SUFFICIENT: Final = "[SUFFICIENT]"


class SoFar(StepsInput):
    """The question, earlier knowledge, and the sub-queries so far; `sources` holds the facts, best first."""

    queries: tuple[SubQuery, ...]
    sources: tuple[Facts, ...]


def render_chain(input: SoFar) -> dict[str, str]:
    """Return the values of a prompt that shows sub-queries with their facts."""
    chain = format_facts(input.queries, input.sources)
    return {"known": format_steps(input.known), "chain": chain, "question": input.question}


class Next(LabeledOutput):
    """[SUBQ] with the next sub-query in `query`, or [SUFFICIENT]."""

    label = "plan"
    written: ClassVar = {SUBQ: ("finding", "facts", "plan", "query"), SUFFICIENT: ("finding", "facts", "plan")}
    needed: ClassVar = {SUBQ: "query"}

    plan: Literal["[SUBQ]", "[SUFFICIENT]"]
    query: str = Field(default="", max_length=240)


class NextWithFinding(Next):
    """Also the finding of the latest sub-query, and the numbers of the facts that contain it."""

    finding: str = Field(default="", max_length=200)
    facts: FactNumbers = Field(default_factory=list)


BEGIN = Role("planner/begin", QuestionInput, str, Sampling(max_tokens=16), choices=(NO_RETRIEVAL, SUBQ))
"""Decide whether the question needs retrieval."""

NEXT = Role("planner/next", SoFar, Next, Sampling(max_tokens=256), render=render_chain)
"""Write the next sub-query, or stop."""

NEXT_WITH_FINDING = Role(
    "planner/next_with_finding", SoFar, NextWithFinding, Sampling(max_tokens=384), render=render_chain
)
"""Write the finding of the latest sub-query, then the next one, or stop."""
