import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from entries import entry
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from sleuth.tools.errors import StoreError, StoreTooNew, UnknownName, UsageError
from sleuth.tools.storage import schema
from sleuth.tools.storage.catalogue import Catalogue, Stored
from sleuth.tools.storage.database import open_engine

URL = "sqlite:///{}/catalogue.db"


def open_catalogue(folder: Path, owner: str = "local", collection: str = "default") -> Catalogue:
    return Catalogue(open_engine(URL.format(folder)), owner=owner, collection=collection)


def replayed(catalogue: Catalogue) -> set[str]:
    """Return the passage ids that result from the journal, read in small pages."""
    held: set[str] = set()
    seq = 0
    while changes := catalogue.changes(seq, limit=7):
        for change in changes:
            held = held | set(change.passage_ids) if change.kind == "add" else held - set(change.passage_ids)
            seq = change.seq
    return held


def test_put_documents_can_be_read(catalogue: Catalogue) -> None:
    one = entry("a.md", "first part", "second part", title="A")
    assert catalogue.put_documents([one]) == Stored(added=1, passages=2)
    assert catalogue.get_document("a.md") == one.document
    assert catalogue.passages([one.passages[1].id, "gone", one.passages[0].id]) == [one.passages[1], one.passages[0]]
    assert (catalogue.count_documents(), catalogue.count_passages()) == (1, 2)
    head = catalogue.head()
    assert catalogue.put_documents([one]) == Stored(unchanged=1)
    assert catalogue.head() == head
    assert catalogue.put_documents([entry("b", "x"), entry("b", "y")]).added == 1, "the last of equal ids wins"
    assert catalogue.get_document("b").text == "y"
    assert catalogue.delete_documents(["a.md", "never there"]) == 1
    assert catalogue.passage_ids() == replayed(catalogue) == {entry("b", "y").passages[0].id}


def test_update_replaces_only_changed_passages(catalogue: Catalogue) -> None:
    before, after = entry("a", "stays", "old"), entry("a", "new", "stays")
    catalogue.put_documents([before])
    head = catalogue.head()
    assert catalogue.put_documents([after]) == Stored(updated=1, passages=1)
    changes = {change.kind: change.passage_ids for change in catalogue.changes(head)}
    assert changes == {"delete": (before.passages[1].id,), "add": (after.passages[0].id,)}
    assert catalogue.passages([after.passages[1].id]) == [after.passages[1]]  # moved, and known at its new place
    head = catalogue.head()
    catalogue.put_documents([entry("a", "new", "stays", title="New title")])
    assert [(change.kind, len(change.passage_ids)) for change in catalogue.changes(head)] == [("delete", 2), ("add", 2)]


def test_document_is_found_by_the_beginning_of_its_id(catalogue: Catalogue) -> None:
    catalogue.put_documents([entry(id, "x") for id in ("papers/light.txt", "papers/lamp.txt", "notes_1", "notesx1")])
    assert catalogue.complete_id("papers/li") == "papers/light.txt"
    assert catalogue.complete_id("notes_") == "notes_1"
    assert catalogue.complete_id("nowhere") == "nowhere"
    with pytest.raises(UsageError, match="Several documents begin with 'papers/l'"):
        catalogue.complete_id("papers/l")
    with pytest.raises(UnknownName, match=r"Did you mean papers/lamp\.txt"):
        catalogue.get_document("papers/lam.txt")


def test_document_is_found_by_its_path(catalogue: Catalogue) -> None:
    catalogue.put_documents([entry(id, "x", source=f"/files/{id}/plan.md") for id in ("a", "b")])
    for path in ("/files/a/plan.md", "a/plan.md", "./a/plan.md"):
        assert catalogue.complete_id(path) == "a"
    assert catalogue.complete_id("lan.md") == "lan.md"
    with pytest.raises(UsageError, match=r"2 documents have the path plan\.md: a, b"):
        catalogue.complete_id("plan.md")


def test_documents_are_listed_in_pages(catalogue: Catalogue) -> None:
    catalogue.put_documents([entry(name, "one", "two") for name in "dbca"])
    first = catalogue.list_documents(limit=3)
    rest = catalogue.list_documents(limit=3, after=first[-1].id)
    assert [listed.id for listed in [*first, *rest]] == ["a", "b", "c", "d"]
    assert {listed.passages for listed in first} == {2}


def test_owners_and_collections_are_separate(tmp_path: Path) -> None:
    places = [("ann", "one"), ("ann", "two"), ("bob", "one")]
    opened = [open_catalogue(tmp_path, *place) for place in places]
    for catalogue, (owner, collection) in zip(opened, places, strict=True):
        catalogue.put_documents([entry("same", f"{owner} {collection}")])
        catalogue.set_embedder(f"{owner} {collection}")
    opened[0].delete_documents(["same"])
    assert opened[0].is_empty()
    assert opened[1].get_document("same").text == "ann two"
    assert replayed(opened[2]) == opened[2].passage_ids() != set()
    assert opened[2].embedder() == "bob one"
    for catalogue in opened:
        catalogue.close()


def test_failed_batch_stores_nothing(catalogue: Catalogue) -> None:
    one, other = entry("a", "x"), entry("b", "y")
    stolen = type(other)(document=other.document, passages=one.passages)  # one passage id in two documents
    with pytest.raises(StoreError, match="cannot be written"):
        catalogue.put_documents([one, stolen])
    assert catalogue.count_documents() == catalogue.head() == 0


def test_store_of_newer_release_is_refused(tmp_path: Path) -> None:
    open_catalogue(tmp_path).close()
    engine = create_engine(URL.format(tmp_path))
    with engine.begin() as connection:
        connection.execute(text("UPDATE sleuth_meta SET value = '99'"))
    engine.dispose()
    with pytest.raises(StoreTooNew, match="Upgrade sleuth"):
        open_catalogue(tmp_path)


@pytest.mark.parametrize("intact", [0, 4096])
def test_damaged_file_is_explained(tmp_path: Path, intact: int) -> None:
    with closing(open_catalogue(tmp_path)) as whole:
        whole.put_documents([entry(f"document {number}", f"text {number} " * 50) for number in range(50)])
    file = tmp_path / "catalogue.db"
    pages = file.read_bytes()
    file.write_bytes(pages[:intact] + b"\xff" * (len(pages) - intact))
    with (
        pytest.raises(StoreError, match=r"cannot be (read|written): .* backup of .*catalogue\.db"),
        closing(open_catalogue(tmp_path)) as damaged,
    ):
        damaged.passage_ids()


PUTS = st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.sampled_from("xyz"), unique=True)), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.one_of(PUTS, st.sampled_from("abc")), max_size=5))
def test_journal_lists_all_changes(steps: list[list[tuple[str, list[str]]] | str], catalogue: Catalogue) -> None:
    for step in steps:
        if isinstance(step, str):
            catalogue.delete_documents([step])
        else:
            catalogue.put_documents([entry(name, *texts) for name, texts in step])
    assert replayed(catalogue) == catalogue.passage_ids()


def test_older_store_is_migrated_statement_by_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_catalogue(tmp_path).close()
    steps = ("ALTER TABLE sleuth_documents ADD COLUMN pages INTEGER", "UPDATE sleuth_documents SET pages = 1")
    monkeypatch.setattr(schema, "SCHEMA_VERSION", 3)
    monkeypatch.setattr(schema, "MIGRATIONS", {1: steps, 2: ("ALTER TABLE sleuth_documents DROP COLUMN pages",)})
    for _ in range(2):
        open_catalogue(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "catalogue.db")) as database:
        (found,) = database.execute("SELECT value FROM sleuth_meta WHERE key = 'schema_version'").fetchone()
        columns = {row[1] for row in database.execute("PRAGMA table_info(sleuth_documents)")}
    assert found == "3"
    assert "pages" not in columns
