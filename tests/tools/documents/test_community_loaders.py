import json
from pathlib import Path

import pytest

from sleuth.tools.documents.community_loaders import check_names, read_with
from sleuth.tools.errors import DocumentError, UnknownName


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


CELLS = [{"cell_type": "markdown", "source": "Of mills."}, {"cell_type": "code", "source": "1 + 1", "outputs": []}]
PAGE = "<html><head><title>The mill</title></head><body>It is old.</body></html>"


@pytest.mark.parametrize(
    ("loader", "content", "title", "parts"),
    [
        ("NotebookLoader", json.dumps({"cells": CELLS}), None, ["Of mills.", "1 + 1"]),
        ("BSHTMLLoader", PAGE, "The mill", ["It is old."]),
        ("CSVLoader", "name\nmill\nbridge\n", None, ["name: mill\n\nname: bridge"]),
    ],
)
def test_class_reads_title_and_text(
    tmp_path: Path, loader: str, content: str, title: str | None, parts: list[str]
) -> None:
    found = read_with(loader, write(tmp_path / "a.txt", content))
    assert found.title == title
    assert all(part in found.sections[0].text for part in parts)


@pytest.mark.parametrize(
    ("loader", "content", "reason"),
    [
        ("NotebookLoader", "no notebook", "JSONDecodeError"),
        ("NotebookLoader", "{}", "KeyError: 'cells'"),
        ("NotebookLoader", '{"cells": [1]}', "AttributeError"),
        ("PythonLoader", "# coding: nonsense\n", "unknown encoding"),
        ("JSONLoader", "{}", "jq_schema"),
        ("SRTLoader", "1\n", "needs a package: .*`pip install pysrt`"),
    ],
)
def test_a_file_that_a_class_cannot_read_has_a_reason_on_one_line(
    tmp_path: Path, loader: str, content: str, reason: str
) -> None:
    with pytest.raises(DocumentError, match=reason) as caught:
        read_with(loader, write(tmp_path / "a.txt", content))
    message = str(caught.value)
    assert message.startswith(f"{loader} ")
    assert len(message.splitlines()) == 1 and len(message) < 400


def test_an_unknown_class_names_the_nearest(tmp_path: Path) -> None:
    check_names(["NotebookLoader", "UnstructuredEPubLoader"])
    with pytest.raises(UnknownName, match=r"'NotebokLoader'. Did you mean NotebookLoader\?"):
        check_names(["NotebookLoader", "NotebokLoader"])
    with pytest.raises(UnknownName):
        read_with("importlib", tmp_path)
