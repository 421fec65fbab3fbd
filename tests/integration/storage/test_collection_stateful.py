"""Random sequences of ingests, changes, deletions, searches, crashes and lost indexes agree with a dictionary."""

import asyncio
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import index_contents
import pytest
from graph_rows import graph_rows
from hashing_embedder import HashingEmbedder
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from storage_operations import Operation, document, execute

from sleuth.tools.collection.collection import Collection
from sleuth.tools.collection.index_set import ALL, IndexSet
from sleuth.tools.ingestion.ingestion import Ingestion
from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.index import IndexName
from sleuth.tools.search.retriever import Mode, Query
from sleuth.tools.search.vectors.index import index_text
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import catalogue_url, open_engine
from sleuth.tools.types import Hit, Passage

WORDS = ("Abbersham", "Brask", "Corrodane", "Dunvarrow", "Ephraim", "Fennimer", "Gunnora", "Hollin")
NAMES = st.sampled_from(["a", "b", "c", "line-d", "line-e"])
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True).map(
    lambda words: f"{' '.join(words)}."
)
TEXTS = st.lists(SENTENCES, min_size=1, max_size=3, unique=True).map(tuple)
FOLDERS = {"keyword": "keywords", "graph": "mentions", "dense": "chroma"}
ALL_OF_THEM = 100
EXAMPLES, PARTS = 5, 60


class CollectionMachine(RuleBasedStateMachine):
    """A library, and the dictionary of what it has to hold."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._settings = Settings(home=Path(self._folder.name) / "home", embedder="hashing")
        self._runner = asyncio.Runner()
        self._documents: dict[str, tuple[str, ...]] = {}
        self._kept: dict[str, tuple[str, ...]] | None = None
        self._open()

    def _open(self) -> None:
        self._library = self._runner.run(Collection.open(self._settings, embedder=HashingEmbedder()))

    def _passages(self) -> dict[str, Passage]:
        entries = (document(name, texts) for name, texts in self._documents.items())
        return {passage.id: passage for each in entries for passage in each.passages}

    @rule(added=st.dictionaries(NAMES, TEXTS, min_size=1, max_size=3))
    def put(self, added: dict[str, tuple[str, ...]]) -> None:
        changed = {name for name, texts in added.items() if self._documents.get(name) != texts}
        stored = self._runner.run(
            Ingestion(self._library).put([document(name, texts) for name, texts in added.items()])
        )
        assert stored.added + stored.updated == len(changed)
        self._documents |= added

    @precondition(lambda self: self._documents)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        names = data.draw(st.lists(st.sampled_from(sorted(self._documents)), min_size=1, max_size=3, unique=True))
        assert self._runner.run(Ingestion(self._library).delete(names)) == len(names)
        for name in names:
            del self._documents[name]

    @precondition(lambda self: self._documents)
    @rule(word=st.sampled_from(WORDS))
    def search_words(self, word: str) -> None:
        assert {hit.passage.id for hit in self._hits(word, "keyword")} == self._with(word)

    @precondition(lambda self: self._documents)
    @rule()
    def search_meaning(self) -> None:
        """Each passage is the nearest to its own text."""
        for passage in self._passages().values():
            hits = self._hits(index_text(passage), "dense")
            assert {hit.passage.id for hit in hits} == self._passages().keys()
            assert hits[0].score > 0.999
            assert index_contents.alike(hits[0].passage, passage)

    @precondition(lambda self: self._documents)
    @rule(word=st.sampled_from(WORDS))
    def search_graph(self, word: str) -> None:
        """Search finds the documents with a word, and those that mention a name."""
        assert {hit.passage.id for hit in self._hits(word, "graph")} >= self._with(word)
        (file,) = (self._settings.home / "mentions").glob("*.db")
        index = GraphIndex(file)
        index_contents.check_names(index, list(self._passages().values()), [f"The {word}."])
        index.close()

    def _with(self, word: str) -> set[str]:
        return {id for id, passage in self._passages().items() if word in passage.text}

    def _hits(self, text: str, mode: Mode) -> list[Hit]:
        hits = self._runner.run(self._library.search(Query(text=text, k=ALL_OF_THEM, mode=mode)))
        passages = self._passages()
        assert all(hit.passage == passages[hit.passage.id] for hit in hits)
        assert len({hit.passage.id for hit in hits}) == len(hits)
        return hits

    @rule()
    def start_anew(self) -> None:
        self._close()
        self._open()

    @rule(added=st.dictionaries(NAMES, TEXTS, min_size=1, max_size=2), die_at=st.sampled_from(ALL))
    def crash(self, added: dict[str, tuple[str, ...]], die_at: IndexName) -> None:
        """Another process acknowledges documents, and is killed while the indexes follow."""
        self._close()
        done = self._runner.run(execute(Operation(kind="put", settings=self._settings, texts=added, die_at=die_at)))
        assert set(done.names) == added.keys()
        self._documents |= added
        self._open()

    @rule(index=st.sampled_from(ALL))
    def lose(self, index: IndexName) -> None:
        """Derived indexes may be deleted at any time."""
        self._close()
        shutil.rmtree(self._settings.home / FOLDERS[index], ignore_errors=True)
        self._open()

    @rule()
    def back_up(self) -> None:
        self._close()
        shutil.copyfile(self._settings.home / "catalogue.db", self._backup)
        self._kept = dict(self._documents)
        self._open()

    @precondition(lambda self: self._kept is not None)
    @rule()
    def put_back(self) -> None:
        """Restore an older catalogue while the indexes are ahead of it."""
        assert self._kept is not None
        self._close()
        shutil.copyfile(self._backup, self._settings.home / "catalogue.db")
        self._documents = dict(self._kept)
        self._open()

    @property
    def _backup(self) -> Path:
        return Path(self._folder.name) / "backup.db"

    def _close(self) -> None:
        self._runner.run(self._library.close())

    def teardown(self) -> None:
        self._close()
        self._compare()
        self._runner.close()
        self._folder.cleanup()

    def _compare(self) -> None:
        """The catalogue and all indexes hold what the dictionary does, to the last name."""
        catalogue = Catalogue(
            open_engine(catalogue_url(self._settings.home, None)), owner="local", collection="default"
        )
        indexes = IndexSet(self._settings, catalogue, HashingEmbedder())
        passages = list(self._passages().values())
        assert catalogue.passage_ids() == self._passages().keys()
        index_contents.check(indexes, passages, passages, WORDS)
        (file,) = (self._settings.home / "mentions").glob("*.db")
        fresh = GraphIndex(Path(self._folder.name) / "fresh.db")
        fresh.apply(upsert=passages, delete=[])
        fresh.close()
        assert graph_rows(file) == graph_rows(Path(self._folder.name) / "fresh.db")
        indexes.close()
        catalogue.close()


EACH = pytest.mark.parametrize(
    "die_at", ["dense", *(pytest.param(name, marks=pytest.mark.nightly) for name in ALL if name != "dense")]
)


@EACH
def test_restored_catalogue_older_than_vectors_is_reindexed(die_at: IndexName) -> None:
    """It does not know that there are any."""
    state = CollectionMachine()
    state.back_up()
    state.put({"a": ("Abbersham.", "Brask.", "Ephraim.")})
    state.search_meaning()
    state.put_back()
    state.crash({"a": ("Abbersham.", "Corrodane.", "Gunnora.")}, die_at)
    state.search_meaning()
    state.teardown()


@pytest.mark.parametrize(
    ("part", "steps"),
    [
        pytest.param(PARTS, 12, marks=pytest.mark.nightly),
        *(pytest.param(part, 40, marks=pytest.mark.faults) for part in range(PARTS)),
    ],
)
def test_operation_sequences_match_a_dictionary(part: int, steps: int) -> None:
    """A fixed number of repeatable examples."""
    how = settings(
        max_examples=EXAMPLES,
        stateful_step_count=steps,
        deadline=None,
        derandomize=False,  # the seed decides
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(part)(CollectionMachine), settings=how)
