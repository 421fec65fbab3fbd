import json
from pathlib import Path

import pytest

from sleuth.tools.documents.community_loaders import check_names, read_with
from sleuth.tools.errors import DocumentError, UnknownName


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_notebook_is_read(tmp_path: Path) -> None:
    cells = [{"cell_type": "markdown", "source": "Of mills."}, {"cell_type": "code", "source": "1 + 1", "outputs": []}]
    found = read_with("NotebookLoader", write(tmp_path / "a.ipynb", json.dumps({"cells": cells})))
    assert found.title is None
    assert "Of mills." in found.sections[0].text and "1 + 1" in found.sections[0].text


def test_the_loader_s_title_is_kept(tmp_path: Path) -> None:
    page = write(tmp_path / "a.html", "<html><head><title>The mill</title></head><body>It is old.</body></html>")
    found = read_with("BSHTMLLoader", page)
    assert found.title == "The mill"
    assert "It is old." in found.sections[0].text


def test_parts_become_paragraphs(tmp_path: Path) -> None:
    found = read_with("CSVLoader", write(tmp_path / "a.csv", "name\nmill\nbridge\n"))
    assert found.sections[0].text == "name: mill\n\nname: bridge"


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
