"""Roles of a survey: which columns a question needs, and the sentence that answers it."""

from typing import Annotated, Literal

from pydantic import Field

from sleuth.agents.formatting import Items
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role
from sleuth.agents.roles.inputs import QuestionInput

MAX_COLUMNS = 12

ColumnKind = Literal["text", "number", "date", "yes-no"]
Operator = Literal["=", "contains", ">=", "<="]


class PlannedColumn(Output):
    """A column: its question is asked of each document alone."""

    name: str = Field(max_length=40, json_schema_extra={"minLength": 1})
    question: str = Field(max_length=300, json_schema_extra={"minLength": 1})
    kind: ColumnKind = "text"


class PlannedCondition(Output):
    """A condition on a column, which the documents that the question is about meet."""

    column: str = Field(max_length=40)
    operator: Operator = "="
    value: str = Field(max_length=100)


class SurveyPlan(Output):
    """The columns of a survey, and the conditions of the documents that count."""

    columns: Annotated[list[PlannedColumn], Field(max_length=MAX_COLUMNS, json_schema_extra={"minItems": 1})]
    conditions: Annotated[list[PlannedCondition], Field(max_length=4)] = Field(default_factory=list)


PLAN_SURVEY = Role("planner/survey", QuestionInput, SurveyPlan, Sampling(max_tokens=768))
"""Plan the columns of a survey."""


class FiguresInput(QuestionInput):
    """A question about a collection, and the figures that code has counted."""

    figures: Items


class SurveySentence(Output):
    """One sentence that answers the question from the figures."""

    sentence: str = Field(max_length=400)


WRITE_SURVEY = Role("answerer/survey", FiguresInput, SurveySentence, Sampling(max_tokens=256))
"""Answer a question about a collection from counted figures."""
