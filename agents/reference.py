"""References of the hybrid system as its roles read them: numbered like passages, each with its kind (CRAG, 4.6)."""

from dataclasses import dataclass
from typing import Literal

from sleuth.agents.sources import Source, number

Kind = Literal["text", "table", "expression", "graph", "model", "note"]

LABELS: dict[Kind, str] = {
    "text": "text",
    "table": "table",
    "expression": "calculation",
    "graph": "knowledge graph",
    "model": "recalled by a model, may be made up",
    "note": "found out before",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Labelled(Source):
    """A reference with its kind."""

    kind: Kind


def listed(references: tuple[Source, ...]) -> str:
    """All references in their order, the kind in front of each title; says so when there is none."""
    labelled = (Source(title=f"({_label(each)}) {each.title}", text=each.text) for each in references)
    return number(tuple(labelled)) or "(no sources)"


def _label(reference: Source) -> str:
    return LABELS[reference.kind] if isinstance(reference, Labelled) else LABELS["text"]
