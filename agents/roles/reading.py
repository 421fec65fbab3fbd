"""Roles that read passages, and roles that write the answer of a run."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from sleuth.agents.formatting import Evidence, FactNumbers, Fenced, Quotes, Sources
from sleuth.agents.model import Sampling
from sleuth.agents.role import Input, Output, Role
from sleuth.agents.roles.inputs import (
    CitedTrajectoryInput,
    PassageInput,
    QuestionInput,
    ReadInput,
    SourcesInput,
    StepsInput,
    TrajectoryInput,
)
from sleuth.agents.roles.planning import SoFar, render_chain

# One question answered from the passages found for it (plain RAG)


class Reading(Output):
    """An answer; `answerable`, written first, is false where the sources do not contain it."""

    answerable: bool
    answer: str = Field(default="", max_length=400)
    citations: Quotes = Field(default=[])


READ = Role("reader/read", ReadInput, Reading, Sampling(max_tokens=512))
"""Answer from passages."""

# The citations of an answer that has none (`require_citations`)


class CiteInput(SourcesInput):
    """A question, an answer to it, and the passages of its run, the likeliest first."""

    answer: Fenced


class Cited(Output):
    """Quotes that show the answer; none where the sources do not contain it."""

    citations: Quotes = Field(default=[])


CITE = Role("reader/cite", CiteInput, Cited, Sampling(max_tokens=512))
"""Cite the passages that show an answer."""

# The preliminary answer of one step (PAR-RAG, section 3.5)


class Draft(Output):
    """An answer from the sources alone, the likeliest where they are unclear; at least one citation is asked for."""

    answer: str = Field(max_length=200, json_schema_extra={"minLength": 1})
    citations: Evidence = Field(default_factory=list)


class Conclusion(Output):
    """An answer that follows from the steps before."""

    answer: str = Field(max_length=200)


DRAFT = Role("drafter/draft", SourcesInput, Draft, Sampling(max_tokens=512))
"""Draft the answer of a step from passages."""


class SentenceDraft(Draft):
    """The same as a full sentence."""

    answer: str = Field(max_length=400, json_schema_extra={"minLength": 1})


DRAFT_SENTENCE: Role[SourcesInput, Draft] = Role(
    "drafter/draft_sentence", SourcesInput, SentenceDraft, Sampling(max_tokens=640)
)
"""Draft the answer of a step as a sentence: the fine query is made from it."""

CONCLUDE = Role("drafter/conclude", TrajectoryInput, Conclusion, Sampling(max_tokens=256))
"""Draft the answer of a step from earlier steps."""

# The passages found for one step, summarized (CRP-RAG, section 3.3)


class AggregateInput(Input):
    """A step and the passages found for it, best first."""

    step: str
    sources: Sources


class Knowledge(Output):
    """A summary; empty where the sources contain nothing about the step."""

    knowledge: str = Field(default="", max_length=600)
    citations: Quotes = Field(default=[])


AGGREGATE = Role("aggregator/aggregate", AggregateInput, Knowledge, Sampling(max_tokens=640, temperature=0.1))
"""Summarize passages with respect to a step."""


class DetailedKnowledge(Knowledge):
    """The same with room for concepts, examples and single findings."""

    knowledge: str = Field(default="", max_length=2_000)


AGGREGATE_IN_DETAIL: Role[AggregateInput, Knowledge] = Role(
    "aggregator/aggregate_in_detail", AggregateInput, DetailedKnowledge, Sampling(max_tokens=1_280, temperature=0.1)
)
"""Summarize passages with concepts and examples, and list what only one of them has (appendix A.3)."""

# The facts of one passage as triples (RAS, section 3.2)

MAX_TRIPLES = 16
"""The most triples that a guided reply may list: a passage of usual length contains fewer."""


class Triple(Output):
    """A fact that can be read alone: entities as the passage writes them."""

    subject: str = Field(max_length=100)
    predicate: str = Field(max_length=80)
    object: str = Field(max_length=160)


class Extraction(Output):
    """All facts of a passage as triples; none where it contains none."""

    triples: Annotated[list[Triple], Field(max_length=4 * MAX_TRIPLES, json_schema_extra={"maxItems": MAX_TRIPLES})]


EXTRACT = Role("extractor/extract", PassageInput, Extraction, Sampling(max_tokens=1024))
"""Extract triples from a passage."""

# The names in a query, to be matched to those of the knowledge graph (PAR-RAG, section 3.3)

MAX_NAMES = 8


class NamesInput(Input):
    """A query, for instance the draft of a step."""

    text: str


class Names(Output):
    """The names in a text; none where it has none."""

    names: Annotated[list[Annotated[str, Field(min_length=1, max_length=80)]], Field(max_length=MAX_NAMES)]


EXTRACT_NAMES = Role("extractor/names", NamesInput, Names, Sampling(max_tokens=256))
"""Extract the names in a query."""

# The answer of a run (PAR-RAG, section 3.5; RAS, section 3.3; the closed-book baseline)


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


ANSWER = Role("answerer/answer", TrajectoryInput, Final, Sampling(max_tokens=256))
"""Answer the question from its steps."""

ANSWER_WITH_SOURCES = Role("answerer/answer_with_sources", CitedTrajectoryInput, Final, Sampling(max_tokens=256))
"""Answer the question from its steps and the passages that they cite."""

ANSWER_FROM_FACTS = Role("answerer/from_facts", SoFar, FromFacts, Sampling(max_tokens=256), render=render_chain)
"""Answer the question from facts."""

ANSWER_UNAIDED = Role("answerer/unaided", QuestionInput, Unaided, Sampling(max_tokens=256))
"""Answer without retrieval."""

ANSWER_FROM_MEMORY = Role("answerer/from_memory", StepsInput, Unaided, Sampling(max_tokens=256))
"""Answer without retrieval: the closed-book baseline."""

# The same as a paragraph (RAS, section 4.1: ASQA and ELI5)

MAX_SENTENCES = 8
"""The most sentences that a guided reply may have."""


class Sentence(Output):
    """A sentence of an answer, and the numbers of the facts that it states."""

    text: str = Field(max_length=400)
    facts: FactNumbers = Field(default_factory=list)


class LongFromFacts(Output):
    """An answer of several sentences; `known` is false where it is a guess."""

    sentences: Annotated[
        list[Sentence], Field(max_length=4 * MAX_SENTENCES, json_schema_extra={"maxItems": MAX_SENTENCES})
    ] = Field(default_factory=list)
    known: bool = True


class LongUnaided(Unaided):
    """An answer of several sentences."""

    answer: str = Field(default="", max_length=2_000)


ANSWER_AT_LENGTH = Role("answerer/long_from_facts", SoFar, LongFromFacts, Sampling(max_tokens=768), render=render_chain)
"""Answer the question from facts in several sentences."""

ANSWER_AT_LENGTH_WITH_EXAMPLES = replace(ANSWER_AT_LENGTH, prompt="answerer/long_from_facts_with_examples")
"""The same, as two examples do."""

ANSWER_UNAIDED_AT_LENGTH: Role[QuestionInput, Unaided] = Role(
    "answerer/long_unaided", QuestionInput, LongUnaided, Sampling(max_tokens=512)
)
"""Answer without retrieval in several sentences."""
