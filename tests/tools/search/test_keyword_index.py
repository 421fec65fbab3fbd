import shutil
from pathlib import Path

import pytest
import tantivy
from entries import entry
from hypothesis import given
from hypothesis import strategies as st

from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.types import Passage

PASSAGES = [
    entry("bridge", "The old bridge was built by masons in 1712.", title="Stone bridge").passages[0],
    entry("river", "A river flows under it towards the sea.", title="River").passages[0],
    entry("mill", "Millers were grinding corn beside the river.", title="Mill").passages[0],
]


@pytest.fixture
def index(tmp_path: Path) -> KeywordIndex:
    index = KeywordIndex(tmp_path / "index")
    index.apply(upsert=PASSAGES, delete=[])
    return index


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> KeywordIndex:
    """For tests that only search."""
    index = KeywordIndex(tmp_path_factory.mktemp("shared"))
    index.apply(upsert=PASSAGES, delete=[])
    return index


def found(index: KeywordIndex, text: str) -> list[str]:
    return [id_.partition("#")[0] for id_, _ in index.search(text, 10)]


@pytest.mark.parametrize(
    "text", ["", "   ", '"', "bridge AND (", "title:bridge^9 -mill", "a:b:c", "\x00", "橋", "[a TO"]
)
def test_query_syntax_is_only_text(shared: KeywordIndex, text: str) -> None:
    assert ("bridge" in found(shared, text)) == ("bridge" in text)


@given(text=st.text())
def test_any_text_is_a_query(shared: KeywordIndex, text: str) -> None:
    shared.search(text, 3)


def test_ids_may_hold_anything(tmp_path: Path) -> None:
    odd = 'a b/ü.md#1 AND "x"'
    index = KeywordIndex(tmp_path / "index")
    passage = Passage(id=odd, document_id="d", title="T", text="needle", start=0, end=6)
    index.apply(upsert=[passage], delete=[])
    assert index.ids() == {odd}
    index.apply(upsert=[], delete=[odd])
    assert index.count() == 0


def test_what_a_killed_writer_left_behind_is_no_hindrance(index: KeywordIndex, tmp_path: Path) -> None:
    """Its files are there, and the one that names them is not yet: the same change writes the same names."""
    folder, before = tmp_path / "index", tmp_path / "before"
    shutil.copytree(folder, before)
    index.apply(upsert=[], delete=[PASSAGES[0].id])
    shutil.copyfile(before / "meta.json", folder / "meta.json")
    assert {path.suffix for path in folder.iterdir()} > {path.suffix for path in before.iterdir()}
    again = KeywordIndex(folder)
    assert again.count() == 3
    again.apply(upsert=[], delete=[PASSAGES[0].id])
    assert again.ids() == {PASSAGES[1].id, PASSAGES[2].id}


def test_index_of_a_former_release_is_emptied(tmp_path: Path) -> None:
    former = tantivy.SchemaBuilder().add_text_field("id", stored=True).add_text_field("text").build()
    tantivy.Index(former, path=str(tmp_path))
    (tmp_path / "applied").write_text("7", encoding="ascii")
    index = KeywordIndex(tmp_path)
    assert (index.applied(), index.reached(), index.count()) == (0, 0, 0)
    index.apply(upsert=PASSAGES, delete=[])
    index.set_applied(3)
    again = KeywordIndex(tmp_path)
    assert (again.applied(), found(again, "rivers")) == (3, ["river", "mill"])


def test_languages_are_those_of_the_passages(index: KeywordIndex) -> None:
    assert index.languages() == ["en"]
    german = entry("mühle", "Die Mühle mahlte das Korn der umliegenden Dörfer.").passages[0]
    index.apply(upsert=[german], delete=[])
    assert index.languages() == ["en", "de"]
    assert found(index, "Mühlen") == ["mühle"]
    index.apply(upsert=[], delete=[german.id])
    assert index.languages() == ["en"]


@pytest.mark.parametrize(
    ("question", "documents"),
    [
        ("who grinds?", ["mill"]),
        ("rivers", ["river", "mill"]),
        ("was it the a by", []),
        ("bridge " + " ".join(f"word{number}" for number in range(20_000)), ["bridge"]),
    ],
    ids=["stems", "a title word weighs more", "stop words", "a whole book"],
)
def test_passages_are_found_by_stems(shared: KeywordIndex, question: str, documents: list[str]) -> None:
    assert found(shared, question) == documents
