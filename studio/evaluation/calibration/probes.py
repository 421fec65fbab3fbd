"""What a model is asked to see when it is sure: every step of questions whose steps are known, else the question."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.studio.simulation.wording import ask_relation, fill_references, split_relation


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """A question, and what counts as right; nothing does where it has no answer."""

    question: str
    answers: tuple[str, ...]


def probes(questions: Iterable[GoldQuestion]) -> list[Probe]:
    """A probe for each step, the answers of earlier steps filled in, and for each question without steps; each once."""
    found = [probe for question in questions for probe in _of(question)]
    return list({probe.question: probe for probe in found}.values())


def _of(question: GoldQuestion) -> list[Probe]:
    steps, right = question.decomposition, tuple(answer for answer in question.answers if answer)
    if not steps or not right:
        return [Probe(question=question.question, answers=right)]
    answers = [step.answer for step in steps]
    found = [Probe(question=_filled(step.question, answers), answers=(step.answer,)) for step in steps]
    return [*found[:-1], replace(found[-1], answers=tuple(dict.fromkeys([answers[-1], *right])))]


def _filled(question: str, answers: list[str]) -> str:
    """A step's question as a planner would put it: `#1` becomes the first answer, "X >> relation" a question."""
    relation = split_relation(question)
    return fill_references(ask_relation(*relation) if relation else question, dict(enumerate(answers, start=1)))
