"""Contracts with an end and a fee, and a model that reads them."""

from dataclasses import dataclass, field
from typing import Any

from scenes import Shelf

from sleuth.agents.model import Request
from sleuth.tools.storage.catalogue import Listed
from sleuth.tools.types import Passage

END = {"name": "end", "question": "When does it end?", "kind": "date"}
FEE = {"name": "fee", "question": "What is the fee?", "kind": "number"}

CONTRACTS = {
    "alder": ("2027-03-31", "1,200"),
    "birch": ("2026-12-31", "800"),
    "cedar": ("", "450"),
    "dogwood": ("2027-06-30", ""),
}
"""Contracts with their end and their fee; empty if not stated."""


def text_of(name: str) -> str:
    end, fee = CONTRACTS[name]
    said = [f"It ends on {end}."] if end else []
    return " ".join([f"The {name} contract.", *said, *([f"The fee is EUR {fee}."] if fee else [])])


@dataclass
class Folder(Shelf):
    """A retriever that lists documents, one passage each unless `parts` has more."""

    parts: dict[str, list[Passage]] = field(default_factory=dict)

    async def documents(self, *, limit: int = 100, after: str = "", find: str = "", where: str = "") -> list[Listed]:
        ids = sorted({each.document_id for each in self.passages})
        return [
            Listed(id=id, title=id.title(), source=f"{id}.txt", media_type="", added_at="1", passages=1)
            for id in ids
            if id > after
        ][:limit]

    async def passages_of(self, document_id: str) -> list[Passage]:
        return [each for each in self.passages if each.document_id == document_id]


def read_contract(request: Request) -> Any:
    """Read a contract as a model without mistakes would."""
    if request.prompt == "planner/survey":
        return {"columns": [END, FEE], "conditions": [{"column": "end", "operator": "=", "value": "2027"}]}
    if request.prompt == "answerer/survey":
        return {"sentence": "2 contracts end in 2027."}
    text = request.input["sources"][0]["text"]
    name = text.split()[1]
    end, fee = CONTRACTS[name]
    value, quote = (
        (end, f"It ends on {end}.") if "end" in request.input["question"] else (fee, f"The fee is EUR {fee}.")
    )
    return {"answerable": bool(value), "answer": value, "citations": [{"source": 1, "quote": quote}] if value else []}
