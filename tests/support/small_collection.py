"""A few passages in a keyword index and an entity graph, without a catalogue."""

from collections.abc import Sequence
from pathlib import Path

from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.index import Index, IndexName
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.types import Passage


def passage(id_: str, title: str, text: str) -> Passage:
    return Passage(id=id_, document_id=id_, title=title, text=text, start=0, end=len(text))


FILLER = [passage(f"f{number}", f"Report {number}", f"Report number {number} on the weather.") for number in range(30)]


class SmallCollection:
    """Indexes of these passages and of the filler."""

    def __init__(self, folder: Path, passages: Sequence[Passage], filler: Sequence[Passage] = FILLER) -> None:
        self._texts = {each.id: each for each in [*passages, *filler]}
        self.graph, self.keywords = GraphIndex(folder / "graph.db"), KeywordIndex(folder / "words")
        self.indexes: dict[IndexName, Index] = {"graph": self.graph, "keyword": self.keywords}
        for index in (self.graph, self.keywords):
            index.apply(upsert=list(self._texts.values()), delete=[])

    def fetch(self, ids: Sequence[str]) -> list[Passage]:
        return [self._texts[id_] for id_ in ids if id_ in self._texts]
