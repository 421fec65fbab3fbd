import json
import zipfile
from pathlib import Path

import pytest

from sleuth.tools.documents.file_list import list_files
from sleuth.tools.documents.loading import NO_LOADERS, LoadedDocument, Loaders, find_spans
from sleuth.tools.documents.parallel_reading import LocalWorkers
from sleuth.tools.ingestion.batch_reader import Batch, BatchReader, make_entry
from sleuth.tools.storage.catalogue import Catalogue


def write(path: Path, text: str = "Some words.") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def batches(catalogue: Catalogue, *roots: Path, loaders: Loaders = NO_LOADERS) -> list[Batch]:
    """Everything below the roots, read and stored batch by batch."""
    files, _ = list_files(roots, loaders=loaders)
    read = []
    for batch in batch_reader(catalogue, loaders=loaders).batches(files):
        read.append(batch)
        catalogue.put_documents(batch.entries)
    return read


def batch_reader(catalogue: Catalogue, *, loaders: Loaders = NO_LOADERS) -> BatchReader:
    return BatchReader(catalogue, LocalWorkers(2, loaders=loaders))


def ids(read: list[Batch]) -> list[str]:
    return [entry.document.id for batch in read for entry in batch.entries]


def test_used_id_gets_a_suffix_and_keeps_it(catalogue: Catalogue, tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        write(root / "a.md", f"Words of {root.name}.")
    first, marked = ids(batches(catalogue, *roots))
    assert first == "a.md" and marked.startswith("a.md~")
    assert ids(batches(catalogue, *roots)) == [first, marked]
    catalogue.delete_documents([first])
    assert ids(batches(catalogue, roots[1])) == [marked]


def test_loader_class_adds_a_file_format(catalogue: Catalogue, tmp_path: Path) -> None:
    write(tmp_path / "docs" / "a.md")
    write(tmp_path / "docs" / "b.cells", '{"cells": [{"cell_type": "markdown", "source": ["Of mills."]}]}')
    assert ids(batches(catalogue, tmp_path / "docs")) == ["a.md"]
    read = batches(catalogue, tmp_path / "docs", loaders={".cells": "NotebookLoader"})
    assert ids(read) == ["a.md", "b.cells"]
    assert "Of mills." in read[0].entries[1].passages[0].text


def corpus(path: Path, lines: int) -> Path:
    rows = (json.dumps({"id": f"p{n}", "title": f"T{n}", "text": f"Text {n}."}) for n in range(lines))
    return write(path, "\n".join(rows))


def test_corpus_keeps_ids_and_is_read_in_batches(catalogue: Catalogue, tmp_path: Path) -> None:
    read = batches(catalogue, corpus(tmp_path / "c.jsonl", 1100), write(tmp_path / "a.md"))
    assert [len(batch.entries) for batch in read] == [512, 512, 77]
    assert ids(read) == [*(f"p{n}" for n in range(1100)), "a.md"]
    assert read[0].entries[0].passages[0].id == "p0"


def taking(path: Path, *ids: str) -> Path:
    """A corpus with these ids, and one that nobody has."""
    rows = (json.dumps({"id": id, "text": "Other words."}) for id in [*ids, "free"])
    return write(path, "\n".join(rows))


def test_corpus_line_with_the_id_of_a_file_is_refused(catalogue: Catalogue, tmp_path: Path) -> None:
    file = write(tmp_path / "docs" / "a.md", "Words of the file.")
    batches(catalogue, file)
    (passage,) = catalogue.passages_of("a.md")
    (read,) = batches(catalogue, taking(tmp_path / "c.jsonl", "a.md", passage.id))
    assert ids([read]) == ["free"]
    assert [failure.source for failure in read.failures] == [str(tmp_path / "c.jsonl")] * 2
    assert f"the id 'a.md' belongs to the file {file}. That line was not read" in str(read.failures[0])
    assert "Words of the file." in catalogue.get_document("a.md").text
    assert catalogue.passages_of("a.md") == [passage]


def test_reading_ends_after_the_present_document(catalogue: Catalogue, tmp_path: Path) -> None:
    files, _ = list_files([corpus(tmp_path / "c.jsonl", 700), write(tmp_path / "a.md")])
    (batch,) = batch_reader(catalogue).batches(files, lambda: True)
    assert ids([batch]) == ["p0"]


def test_passage_keeps_its_id_when_other_text_changes() -> None:
    paragraphs = [f"Paragraph {n}. " + "It goes on and on about the same. " * 20 for n in range(4)]
    before = make_entry(document_id="a", source="a", loaded=loaded("\n\n".join(paragraphs)))
    after = make_entry(
        document_id="a",
        source="a",
        loaded=loaded("\n\n".join([paragraphs[0].replace("same", "like"), *paragraphs[1:]])),
    )
    kept = {passage.id for passage in before.passages} & {passage.id for passage in after.passages}
    assert len(before.passages) == 4
    assert len(kept) == 3
    text = "\n\n".join(["The very same words again. " * 25] * 3)
    equal = make_entry(document_id="a", source="a", loaded=loaded(text)).passages
    assert len({passage.id for passage in equal}) == len(equal) == 3
    assert all(text[passage.start : passage.end] == passage.text for passage in equal)


def loaded(text: str) -> LoadedDocument:
    return LoadedDocument(title="A", text=text, media_type="text/plain", spans=tuple(find_spans(text, "text/plain")))


@pytest.mark.parametrize("name", ["長" * 1_200, "a" * 3_000, "a/" * 1_500 + "b", "\N{GRINNING FACE}" * 600])
def test_long_member_name_fails_alone_with_its_reason(catalogue: Catalogue, tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "old.zip", "w") as archive:
        for member in (f"{name}.md", "b.md"):
            archive.writestr(member, "Some words.")
    (batch,) = batches(catalogue, tmp_path / "old.zip")
    assert ids([batch]) == ["old.zip/b.md"]
    (failure,) = batch.failures
    assert "old.zip/" in str(failure) and str(failure).endswith(
        "its path has more than 2,000 bytes. Give it a shorter name."
    )
    assert (len(str(failure)) < 2_200, batch.files) == (True, 2)


def test_broken_and_vanished_files_are_failures_and_others_are_read(catalogue: Catalogue, tmp_path: Path) -> None:
    for name in ("a.md", "c.md", "d.md"):
        write(tmp_path / name)
    write(tmp_path / "b.md", "")
    files, _ = list_files([tmp_path])
    (tmp_path / "d.md").unlink()
    (read,) = batch_reader(catalogue).batches(files)
    assert ids([read]) == ["a.md", "c.md"]
    assert (read.files, len(read.failures)) == (4, 2)
    assert [failure.path.name for failure in read.failures] == ["b.md", "d.md"]
    assert not any("\n" in str(failure) for failure in read.failures)


@pytest.mark.parametrize("corpus_first", [True, False])
def test_file_and_corpus_line_in_one_batch_are_distinct(
    catalogue: Catalogue, tmp_path: Path, corpus_first: bool
) -> None:
    file, lines = write(tmp_path / "docs" / "a.md", "Words of the file."), taking(tmp_path / "c.jsonl", "a.md")
    (read,) = batches(catalogue, *([lines, file] if corpus_first else [file, lines]))
    assert (sorted(ids([read])), len(read.failures)) == (["a.md", "free"], 1)
    assert "Words of the file." in catalogue.get_document("a.md").text
    (moved,) = batches(catalogue, taking(tmp_path / "new.jsonl"))
    assert (ids([moved]), moved.failures) == (["free"], [])
