import json
from pathlib import Path

import pytest

from sleuth.tools.documents.community_loaders import check_names, read_with
from sleuth.tools.errors import DocumentError, UnknownName


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def refusal(loader: str, path: Path) -> str:
    with pytest.raises(DocumentError) as caught:
        read_with(loader, path)
    message = str(caught.value)
    assert message.startswith(f"{loader} ")
    assert len(message.splitlines()) == 1 and len(message) < 400
    return message


def test_a_notebook_is_read(tmp_path: Path) -> None:
    cells = [{"cell_type": "markdown", "source": "Of mills."}, {"cell_type": "code", "source": "1 + 1", "outputs": []}]
    title, text = read_with("NotebookLoader", write(tmp_path / "a.ipynb", json.dumps({"cells": cells})))
    assert title is None
    assert "Of mills." in text and "1 + 1" in text


def test_the_loader_s_title_is_kept(tmp_path: Path) -> None:
    page = write(tmp_path / "a.html", "<html><head><title>The mill</title></head><body>It is old.</body></html>")
    title, text = read_with("BSHTMLLoader", page)
    assert title == "The mill"
    assert "It is old." in text


def test_parts_become_paragraphs(tmp_path: Path) -> None:
    _, text = read_with("CSVLoader", write(tmp_path / "a.csv", "name\nmill\nbridge\n"))
    assert text == "name: mill\n\nname: bridge"


@pytest.mark.parametrize(
    ("content", "reason"),
    [("no notebook", "JSONDecodeError"), ("{}", "KeyError: 'cells'"), ('{"cells": [1]}', "AttributeError")],
)
def test_a_broken_file_is_a_line_about_it(tmp_path: Path, content: str, reason: str) -> None:
    assert reason in refusal("NotebookLoader", write(tmp_path / "a.ipynb", content))


def test_what_a_parser_calls_a_syntax_error_is_a_line_too(tmp_path: Path) -> None:
    assert "unknown encoding" in refusal("PythonLoader", write(tmp_path / "a.py", "# coding: nonsense\n"))


def test_a_class_that_takes_more_than_a_path_is_a_line_too(tmp_path: Path) -> None:
    assert "jq_schema" in refusal("JSONLoader", write(tmp_path / "a.json", "{}"))


def test_a_missing_package_is_named_with_how_to_install_it(tmp_path: Path) -> None:
    assert "needs a package" in (message := refusal("SRTLoader", write(tmp_path / "a.srt", "1\n")))
    assert "`pip install pysrt`" in message


def test_an_unknown_class_names_the_nearest(tmp_path: Path) -> None:
    check_names(["NotebookLoader", "UnstructuredEPubLoader"])
    with pytest.raises(UnknownName, match=r"'NotebokLoader'. Did you mean NotebookLoader\?"):
        check_names(["NotebookLoader", "NotebokLoader"])
    with pytest.raises(UnknownName):
        read_with("importlib", tmp_path)
