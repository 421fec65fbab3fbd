"""Roles that read passages, and roles that write the answer of a run."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, model_validator

from sleuth.agents.formatting import Evidence, FactNumbers, Quotes, Sources, Steps
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role
from sleuth.agents.roles.planning import SoFar, render_chain
from sleuth.agents.roles.reasoning import QuestionInput

# One question answered from the passages found for it (plain RAG)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadInput:
    """The question, the passages, best first, and the steps answered so far."""

    question: str
    sources: Sources
    known: Steps = ()


class Reading(Output):
    """An answer; `answerable`, written first, is false where the sources do not contain it."""

    answerable: bool
    answer: str = Field(default="", max_length=400)
    citations: Quotes = Field(default=[])


READ = Role("reader/read", ReadInput, Reading, Sampling(max_tokens=512))
"""Answer from passages."""

# The preliminary answer of one step (PAR-RAG, section 3.5)


@dataclass(frozen=True, kw_only=True, slots=True)
class DraftInput:
    """A step's question and the passages found for it, best first."""

    question: str
    sources: Sources


class Draft(Output):
    """An answer from the sources alone, the likeliest where they are unclear; at least one citation is asked for."""

    answer: str = Field(max_length=200, json_schema_extra={"minLength": 1})
    citations: Evidence = Field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConcludeInput:
    """A step's question that needs no search, and the steps before it."""

    question: str
    trajectory: Steps


class Conclusion(Output):
    """An answer that follows from the steps before."""

    answer: str = Field(max_length=200)


DRAFT = Role("drafter/draft", DraftInput, Draft, Sampling(max_tokens=512))
"""Draft the answer of a step from passages."""

CONCLUDE = Role("drafter/conclude", ConcludeInput, Conclusion, Sampling(max_tokens=256))
"""Draft the answer of a step from earlier steps."""

# The passages found for one step, summarized (CRP-RAG, section 3.3)


@dataclass(frozen=True, kw_only=True, slots=True)
class AggregateInput:
    """A step and the passages found for it, best first."""

    step: str
    sources: Sources


class Knowledge(Output):
    """A summary; empty where the sources contain nothing about the step."""

    knowledge: str = Field(default="", max_length=600)
    citations: Quotes = Field(default=[])


AGGREGATE = Role("aggregator/aggregate", AggregateInput, Knowledge, Sampling(max_tokens=640, temperature=0.1))
"""Summarize passages with respect to a step."""

# The facts of one passage as triples (RAS, section 3.2)

MAX_TRIPLES = 16
"""The most triples that a guided reply may list: a passage of usual length contains fewer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractInput:
    """One passage."""

    sources: Sources


class Triple(Output):
    """A fact that can be read alone: entities as the passage writes them."""

    subject: str = Field(max_length=100)
    predicate: str = Field(max_length=80)
    object: str = Field(max_length=160)


def _triples(value: object) -> object:
    """Accept a bare list."""
    return {"triples": value} if isinstance(value, list) else value


class Extraction(Output):
    """All facts of a passage as triples; none where it contains none."""

    triples: Annotated[list[Triple], Field(max_length=4 * MAX_TRIPLES, json_schema_extra={"maxItems": MAX_TRIPLES})]

    _accept_list = model_validator(mode="before")(_triples)


EXTRACT = Role("extractor/extract", ExtractInput, Extraction, Sampling(max_tokens=1024))
"""Extract triples from a passage."""

# The answer of a run (PAR-RAG, section 3.5; RAS, section 3.3; the closed-book baseline)


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerInput:
    """The original question and the whole trajectory."""

    question: str
    trajectory: Steps


class Final(Output):
    """An answer; `known` is false, and `answer` empty, where the steps do not contain it."""

    known: bool
    answer: str = Field(default="", max_length=400)


class Unaided(Output):
    """The best answer in any case; `known`, written last, is false where it is a guess."""

    answer: str = Field(default="", max_length=400)
    known: bool = True


class FromFacts(Output):
    """The best answer from the facts with these numbers; `known` is false where it is a guess."""

    facts: FactNumbers = Field(default_factory=list)
    answer: str = Field(default="", max_length=400)
    known: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryInput:
    """The question, and the steps of an earlier run."""

    question: str
    known: Steps = ()


ANSWER = Role("answerer/answer", AnswerInput, Final, Sampling(max_tokens=256))
"""Answer the question from its steps."""

ANSWER_FROM_FACTS = Role("answerer/from_facts", SoFar, FromFacts, Sampling(max_tokens=256), render=render_chain)
"""Answer the question from facts."""

ANSWER_UNAIDED = Role("answerer/unaided", QuestionInput, Unaided, Sampling(max_tokens=256))
"""Answer without retrieval."""

ANSWER_FROM_MEMORY = Role("answerer/from_memory", MemoryInput, Unaided, Sampling(max_tokens=256))
"""Answer without retrieval: the closed-book baseline."""
