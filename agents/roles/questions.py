"""Roles that write evaluation questions from passages."""

from pydantic import Field

from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role
from sleuth.agents.roles.inputs import PassageInput


class LinkedPassagesInput(PassageInput):
    """Two passages, and the name that connects them."""

    name: str


class SingleHopQuestion(Output):
    """A question with its answer, both from one passage."""

    question: str = Field(max_length=300)
    answer: str = Field(max_length=120)
    quote: str = Field(default="", max_length=400)


class MultiHopQuestion(Output):
    """A question in two steps: the first one's answer is the name that connects the passages."""

    first: str = Field(max_length=300)
    second: str = Field(max_length=300)
    answer: str = Field(max_length=120)
    question: str = Field(max_length=300)


class UnanswerableQuestion(Output):
    """A question for a fact that the passage lacks."""

    missing: str = Field(default="", max_length=200)
    question: str = Field(max_length=300)


WRITE_SINGLE = Role("questioner/single", PassageInput, SingleHopQuestion, Sampling(max_tokens=320))
"""Write a question that one passage answers."""
WRITE_MULTI = Role("questioner/multi", LinkedPassagesInput, MultiHopQuestion, Sampling(max_tokens=480))
"""Write a question that needs two passages."""
WRITE_UNANSWERABLE = Role("questioner/unanswerable", PassageInput, UnanswerableQuestion, Sampling(max_tokens=256))
"""Write a question that the passage does not answer."""
