"""Labeled questions: training data of the SVM, and demonstrations for the model that classifies.

The package's own are in questions.jsonl. docs/reference/question-attributes.md describes their origin and labels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Annotated

from pydantic import StrictBool, StringConstraints, TypeAdapter

from sleuth.tools.sources.question_attributes import DOMAINS, Domain


@dataclass(frozen=True, slots=True)
class Example:
    """A question and what it was labelled."""

    question: Annotated[str, StringConstraints(pattern=r"\S")]
    domain: Domain
    dynamic: StrictBool


EXAMPLE = TypeAdapter(Example)


def packaged_examples() -> list[Example]:
    """Return the questions of the package. Blocks: reads a file."""
    lines = files(__package__).joinpath("questions.jsonl").read_text(encoding="utf-8").split("\n")
    return [EXAMPLE.validate_json(line) for line in lines if line.strip()]


def select_demonstrations(examples: Iterable[Example], *, each: int) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Return `each` examples for every domain, and as many for static and for dynamic; selected by hash.

    Examples of a domain alternate between static and dynamic, and those of static and dynamic alternate between
    domains, so that neither attribute predicts the other.
    """
    drawn = sorted(examples, key=lambda example: sha256(example.question.encode()).hexdigest())
    cells = {
        (domain, dynamic): [each for each in drawn if (each.domain, each.dynamic) == (domain, dynamic)]
        for domain in DOMAINS
        for dynamic in (False, True)
    }
    by_domain = [_mixed([cells[domain, False], cells[domain, True]])[:each] for domain in DOMAINS]
    by_change = [_mixed([cells[domain, dynamic] for domain in DOMAINS])[:each] for dynamic in (False, True)]
    return tuple(_mixed(by_domain)), tuple(_mixed(by_change))


def _mixed(lists: Sequence[Sequence[Example]]) -> list[Example]:
    """Return the first of each list, then the second of each, to the end of the longest."""
    longest = max(map(len, lists))
    return [each[at] for at in range(longest) for each in lists if at < len(each)]
