import json
from pathlib import Path

import pytest

from sleuth.tools.errors import DocumentError, UsageError
from sleuth.tools.sources.web_pages.page import Page, PageText, Table, read_page_file

ROW = {
    "page_name": "Ferries",
    "page_url": "https://a.example/f",
    "page_snippet": "Two ran.",
    "page_result": "<p>Two ran.</p>",
    "page_last_modified": None,
}
PAGE = Page(html="<p>Two ran.</p>", url="https://a.example/f", name="Ferries", snippet="Two ran.")


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("given", [ROW, [ROW], {"query": "how many?", "search_results": [ROW]}])
def test_pages_as_the_benchmark_has_them(tmp_path: Path, given: object) -> None:
    assert read_page_file(written(tmp_path / "pages.json", json.dumps(given).encode())) == [PAGE]


def test_encoding_of_a_page_is_found(tmp_path: Path) -> None:
    declared, wrong = '<meta charset="windows-1251"><p>Мельница</p>', '<meta charset="shift_jis"><p>Mühle</p>'
    assert read_page_file(written(tmp_path / "page.HTML", declared.encode("cp1251"))) == [Page(html=declared)]
    assert read_page_file(written(tmp_path / "page.htm", wrong.encode())) == [Page(html=wrong)]


@pytest.mark.parametrize(
    ("name", "data", "kind", "reason"),
    [
        ("page.json", b"{}", DocumentError, "page_result"),
        ("page.json", b'[{"page_result": 3}]', DocumentError, "is not a page as JSON"),
        ("page.html", b"", DocumentError, "empty"),
        ("page.html", b"\x00\x01\x02" * 99, DocumentError, "binary"),
        ("page.pdf", b"%PDF-", UsageError, "sleuth ingest"),
        ("none.html", None, UsageError, "There is no file"),
    ],
)
def test_file_that_is_no_page_has_a_reason(
    tmp_path: Path, name: str, data: bytes | None, kind: type[Exception], reason: str
) -> None:
    path = tmp_path / name if data is None else written(tmp_path / name, data)
    with pytest.raises(kind, match=reason):
        read_page_file(path)


def test_what_was_read_comes_back_from_json() -> None:
    page = PageText(
        id="u", name="Fähren", text="Two.", sentences=((0, 4),), tables=(Table(markdown="| a |"),), warnings=("w",)
    )
    assert PageText.from_json(page.to_json()) == page
