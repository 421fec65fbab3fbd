"""Inputs that several roles share."""

from sleuth.agents.formatting import Sources, Steps
from sleuth.agents.role import Input


class PassageInput(Input):
    """Passages alone."""

    sources: Sources


class QuestionInput(Input):
    """A question alone."""

    question: str


class StepsInput(QuestionInput):
    """A question, and the steps that are answered already and need not be asked again."""

    known: Steps = ()


class TrajectoryInput(QuestionInput):
    """A question, and all the steps before it."""

    trajectory: Steps


class CitedTrajectoryInput(TrajectoryInput):
    """Also the passages that the steps cite."""

    sources: Sources


class SourcesInput(QuestionInput):
    """A question, and the passages found for it, best first."""

    sources: Sources


class ReadInput(SourcesInput):
    """Also the steps answered so far, or the inferences kept so far."""

    known: Steps = ()
