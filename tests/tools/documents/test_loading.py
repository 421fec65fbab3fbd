import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sleuth.tools.documents.loading import MAX_FILE_BYTES, LoadedDocument, find_files, is_supported, load
from sleuth.tools.errors import DocumentError, UsageError


def tree(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text")
    return root


def found(*paths: Path, below: Path) -> list[str]:
    return [path.relative_to(below).as_posix() for path in find_files(paths)]


def refusal(path: Path) -> str:
    with pytest.raises(DocumentError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert len(message.splitlines()) == 1
    return message


def test_folders_are_walked_in_order_of_name(tmp_path: Path) -> None:
    tree(tmp_path, "b.md", "a/z.txt", "a/b/c.pdf", "c.xyz", "A.md")
    assert found(tmp_path, below=tmp_path) == ["A.md", "a/b/c.pdf", "a/z.txt", "b.md", "c.xyz"]


def test_named_paths_keep_their_order_and_come_once(tmp_path: Path) -> None:
    tree(tmp_path, "b.md", "a/z.txt")
    assert found(tmp_path / "b.md", tmp_path, tmp_path / "a", below=tmp_path) == ["b.md", "a/z.txt"]


def test_hidden_files_are_read_only_when_named(tmp_path: Path) -> None:
    tree(tmp_path, ".git/config.txt", ".hidden.md", "a.md")
    assert found(tmp_path, below=tmp_path) == ["a.md"]
    assert found(tmp_path / ".hidden.md", tmp_path / ".git", below=tmp_path) == [".hidden.md", ".git/config.txt"]


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    tree(tmp_path, "home/a.md", "elsewhere/b.md")
    (tmp_path / "home" / "loop").symlink_to(tmp_path / "home", target_is_directory=True)
    (tmp_path / "home" / "self.md").symlink_to(tmp_path / "home" / "self.md")
    (tmp_path / "home" / "other").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert found(tmp_path / "home", below=tmp_path) == ["home/a.md", "home/other/b.md", "home/self.md"]
    assert "cannot be opened" in refusal(tmp_path / "home" / "self.md")


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no file or folder '.*missing'"):
        list(find_files([tmp_path / "missing"]))


def test_every_file_of_a_crowded_folder_is_found(tmp_path: Path) -> None:
    for number in range(1_000):
        os.close(os.open(tmp_path / f"{number}.txt", os.O_CREAT))
    assert sum(map(is_supported, find_files([tmp_path]))) == 1_000


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.md", True),
        ("a.HTML", True),
        ("a.jsonl.gz", True),
        ("a.jsonl", True),
        ("a.xyz", False),
        ("README", False),
        ("a.gz", False),
    ],
)
def test_what_is_supported(name: str, expected: bool) -> None:
    assert is_supported(Path(name)) is expected


def test_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "the-old_mill.txt"
    path.write_bytes("It’s old.\r\nVery.".encode())
    assert load(path) == LoadedDocument(title="The old mill", text="It’s old.\nVery.", media_type="text/plain")


def test_utf_16_text(tmp_path: Path) -> None:
    (tmp_path / "a.TXT").write_text("Größe und Maß", encoding="utf-16")
    assert load(tmp_path / "a.TXT").text == "Größe und Maß"


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "is empty"), (b" \n\n", "has no text"), (b"\0\1\2\3" * 99, "binary data")]
)
def test_file_without_text_is_reported(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    assert reason in refusal(tmp_path / "a.txt")


def test_a_gigantic_file_is_not_even_opened(tmp_path: Path) -> None:
    with (tmp_path / "a.txt").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert "at most 64.0 MiB" in refusal(tmp_path / "a.txt")


def test_the_limit_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    assert load(tmp_path / "a.txt", max_bytes=4).text == "text"
    with pytest.raises(DocumentError, match="at most"):
        load(tmp_path / "a.txt", max_bytes=3)


def test_an_unknown_type_names_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text("text")
    assert ".docx" in refusal(tmp_path / "a.xyz")


def test_a_loader_class_goes_before_what_is_read_without_one(tmp_path: Path) -> None:
    (tmp_path / "the-mill.MD").write_text('{"cells": [{"cell_type": "raw", "source": "I\\u0308ts old."}]}')
    read = load(tmp_path / "the-mill.MD", loaders={".md": "NotebookLoader"})
    assert (read.title, read.media_type) == ("The mill", "text/plain")
    assert "Ïts old." in read.text


def test_a_loader_class_gets_no_file_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").touch()
    with pytest.raises(DocumentError, match=r"a\.ipynb: is empty"):
        load(tmp_path / "a.ipynb", loaders={".ipynb": "NotebookLoader"})
    (tmp_path / "a.ipynb").write_text("text")
    with pytest.raises(DocumentError, match="at most"):
        load(tmp_path / "a.ipynb", loaders={".ipynb": "NotebookLoader"}, max_bytes=3)


def test_a_file_that_went_away_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.txt").symlink_to(tmp_path / "gone.txt")
    assert found(tmp_path, below=tmp_path) == ["a.txt"]
    assert "cannot be opened (No such file" in refusal(tmp_path / "a.txt")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    assert "no ordinary file" in refusal(tmp_path / "a.txt")


@pytest.fixture
def guarded() -> Iterator[Path]:
    """A folder with a file and a folder that may not be read, not by root either while the test runs."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        root = tree(Path(name), "a.txt", "closed/b.txt")
        root.chmod(0o755)
        (root / "a.txt").chmod(0)
        (root / "closed").chmod(0)
        os.seteuid(user or 65534)
        try:
            yield root
        finally:
            os.seteuid(user)
            (root / "closed").chmod(0o755)


def test_what_may_not_be_read_is_reported(guarded: Path) -> None:
    assert found(guarded, below=guarded) == ["a.txt", "closed"]
    assert is_supported(guarded / "closed")
    assert "Permission denied" in refusal(guarded / "a.txt")
    assert "may not be read" in refusal(guarded / "closed")
    with pytest.raises(UsageError, match="no file or folder"):
        list(find_files([guarded / "closed" / "b.txt"]))
