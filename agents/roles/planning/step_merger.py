"""FUSE: similar steps become one (CRP-RAG, section 3.2)."""

from dataclasses import dataclass

from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role
from sleuth.agents.roles.planning.expander import StepText


@dataclass(frozen=True, kw_only=True, slots=True)
class FuseInput:
    """The question, and steps on the way to its answer that are much alike."""

    question: str
    steps: tuple[str, ...]


class Fused(Output):
    """The step that replaces them."""

    step: StepText


FUSE: Role[FuseInput, Fused] = Role(
    name="fuser",
    prompt="fuser/fuse",
    input=FuseInput,
    output=Fused,
    render=lambda given: {"question": given.question, "steps": trajectory.listed(given.steps)},
    sampling=Sampling(max_tokens=200, temperature=0.1),
)
