from dataclasses import replace

import pytest
from entries import entry

from sleuth.graphs.evidence.citations import citation_at
from sleuth.graphs.evidence.retrieval import mark_changed
from sleuth.tools.types import Passage

STORED = entry("a", "The mill was built by Ada.", "It burned down.").passages


class Documents:
    """The passages of one document."""

    def __init__(self, *passages: Passage) -> None:
        self._passages = passages

    async def passages_of(self, document_id: str) -> list[Passage]:
        return [each for each in self._passages if each.document_id == document_id]


@pytest.mark.parametrize(
    ("now", "changed"),
    [
        (STORED, None),
        (STORED[1:], True),
        ((replace(STORED[0], text="The mill was built by Rosa."), STORED[1]), True),
        ((), None),
        (entry("other", "The mill was built by Ada.").passages, None),
    ],
)
async def test_citation_of_an_updated_document_is_marked(now: tuple[Passage, ...], changed: bool | None) -> None:
    citation = citation_at(STORED[0], (0, 26))
    await mark_changed([citation], Documents(*now))
    assert citation.get("changed") is changed


def test_citation_has_the_place_of_its_quote() -> None:
    places = '[[0, "p.", 3, 0], [13, "p.", 4, 0]]'
    passage = replace(STORED[0], location="p. 3–4", places=places)
    assert [citation_at(passage, span).get("location") for span in ((0, 8), (14, 26), (4, 20))] == [
        "p. 3",
        "p. 4",
        "p. 3–4",
    ]
    assert citation_at(replace(passage, places=""), (0, 8)).get("location") == "p. 3–4"
