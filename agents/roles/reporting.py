"""Roles of a report: its outline, and the sentences of a section."""

from typing import Annotated

from pydantic import Field

from sleuth.agents.formatting import Sources, Steps
from sleuth.agents.model import Sampling
from sleuth.agents.role import Input, Output, Role
from sleuth.agents.roles.inputs import SourcesInput

MAX_SECTIONS = 12
GUIDED_SECTIONS = 6
"""The most sections that a guided reply may list: a small model would not come to an end."""
MAX_SENTENCES = 12


class OutlinedSection(Output):
    """A section: its heading, and the question that its research answers."""

    heading: str = Field(default="", max_length=120)
    question: str = Field(min_length=1, max_length=300)


class Outline(Output):
    """The title of a report and its sections."""

    title: str = Field(default="", max_length=160)
    sections: Annotated[
        list[OutlinedSection],
        Field(min_length=1, max_length=MAX_SECTIONS, json_schema_extra={"maxItems": GUIDED_SECTIONS}),
    ]


OUTLINE = Role("planner/outline", SourcesInput, Outline, Sampling(max_tokens=1024))
"""Plan the sections of a report from its question and a first search."""


class SectionInput(Input):
    """The question of a section and that of the report, what research has found, and the passages it may use."""

    question: str
    report: str
    known: Steps
    sources: Sources


class SectionSentence(Output):
    """A sentence, and the numbers of the sources that show it."""

    text: str = Field(min_length=1, max_length=500)
    sources: Annotated[list[int], Field(max_length=3, json_schema_extra={"minItems": 1})] = Field(default_factory=list)


class Section(Output):
    """The sentences of a section."""

    sentences: Annotated[list[SectionSentence], Field(max_length=MAX_SENTENCES)] = Field(default_factory=list)


WRITE_SECTION = Role("answerer/section", SectionInput, Section, Sampling(max_tokens=1536))
"""Write a section of a report from passages."""
