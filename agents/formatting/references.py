"""References of the hybrid system as its roles read them: numbered like passages, each with its kind (CRAG, 4.6)."""

from dataclasses import dataclass
from typing import Literal

from sleuth.agents.formatting.sources import Source, unfenced

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
    """All references in their order; says so when there is none.

    The mark of what is no passage names its kind, which no title can forge; passages and tables are marked as ever.
    """
    return "\n".join(_marked(at, each) for at, each in enumerate(references, start=1)) or "(no sources)"


def _marked(number: int, reference: Source) -> str:
    kind = reference.kind if isinstance(reference, Labelled) else "text"
    mark = f"{number}" if kind in ("text", "table") else f"{number} ({LABELS[kind]})"
    title, text = unfenced(" ".join(reference.title.split())), unfenced(reference.text.strip())
    return f"<source {mark}>\n{title}\n{text}\n</source {number}>"
