"""Pages read in a process of their own: what is made of them, and what hostile ones cannot do."""

import resource
from dataclasses import replace

import pytest

from sleuth.tools.documents.resource_limits import Bounds
from sleuth.tools.documents.worker import Worker
from sleuth.tools.web_pages.page import Page, PageText
from sleuth.tools.web_pages.reading import MAX_PAGES, MAX_TEXT, PAGE_SECONDS, read_page, read_pages

ARTICLE = "The weir house was built by Rosa Quill in 1843, and it has stood beside the river ever since. " * 4
TABLE = "<table><tr><th>Keeper<th>Years<tr><td>Tom Ash<td>1850</table>"
PAGE = f"""<!DOCTYPE html><html><head><title>The weir house | Gazette</title><script>var x = "no text";</script></head>
<body><nav><a href="/">Home</a></nav><main><h1>The weir house</h1><p>{ARTICLE}</p>{TABLE}<p>Who lived there? {ARTICLE}
</p></main><footer>Cookies.</footer></body></html>"""


async def read(html: str, *, seconds: float = 300, **known: str) -> PageText:
    return (await read_pages([Page(html=html, **known)], seconds=seconds))[0]  # type: ignore[arg-type]


async def test_a_page_becomes_text_sentences_and_tables() -> None:
    page = await read(PAGE, url="https://a.example/weir", last_modified="Mon, 04 Mar 2024 10:49:26 GMT")
    assert (page.id, page.name) == ("https://a.example/weir", "The weir house")
    assert (await read(PAGE, name="Weirs")).name == "Weirs"
    assert page.text.count("Rosa Quill") == 8
    assert [table.markdown for table in page.tables] == ["| Keeper | Years |\n| --- | --- |\n| Tom Ash | 1850 |"]
    assert "Who lived there?" in [page.text[start:end] for start, end in page.sentences]
    for absent in ("Tom Ash", "no text", "Home", "Cookies", "<"):
        assert absent not in page.text
    assert page.warnings == ()


async def test_a_page_without_an_article_is_read_as_a_whole_or_as_its_snippet() -> None:
    assert (await read("<div>Two ferries ran.</div>")).text == "Two ferries ran."
    page = await read("", name="Ferries\nof\x00 old", snippet="Two ran.\nBoth sank.")
    assert (page.name, page.text) == ("Ferries of old", "Two ran. Both sank.")
    assert page.warnings == ("Ferries of old: nothing could be read: its snippet is used instead",)


HOSTILE = {
    "soup": "<script>if (a < b) { '<p>' }</script><style>p {}</style>" * 20_000,
    "unclosed": "<div><b><i><span>" * 20_000,
    "deep": "<div>" * 30_000,
    "entities": "&amp;" * 200_000 + "&#x110000;&#0;",
    "one word": "x" * 2_000_000,
    "declared wrongly": "<meta charset=utf-7><?xml version='1.0' encoding='nobody-knows'?>",
    "rows": "<table>" + "<tr><td>1<td>2" * 20_000 + "</table>",
    "spans": "<table>" + "<tr><td rowspan=9999 colspan=9999>1<td>2" * 100 + "</table>",
}


def _worked() -> float:
    """Processor seconds of the processes that have ended: a page's, however busy the machine is."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.nightly
@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_page_stays_within_the_limits(name: str) -> None:
    before = _worked()
    page = await read(HOSTILE[name] + PAGE, seconds=PAGE_SECONDS, snippet="Two ran.")
    assert _worked() - before < 2 * PAGE_SECONDS, "it was not given up in time"
    assert page.text
    assert len(page.text) <= MAX_TEXT
    assert "Rosa Quill" in page.text or page.warnings, "something was lost, and nobody says so"


async def test_a_page_that_takes_too_long_is_given_up_and_the_next_is_read() -> None:
    slow = Page(html="<table>" + "<tr><td>1<td>2" * 200_000, name="Slow", snippet="Two ran.")
    worker = Worker("sleuth.tools.web_pages.reading.extract", Bounds())
    first = await read_page(worker, slow, seconds=0.01)  # in which no process begins
    second = await read_page(worker, Page(html=PAGE), seconds=300)
    worker.stop()
    assert first.text == "Two ran."
    assert first.warnings == ("Slow: was given up, because it takes longer than 0.01 s: its snippet is used instead",)
    assert "Rosa Quill" in second.text


@pytest.mark.nightly
async def test_a_page_that_takes_too_much_memory_is_given_up() -> None:
    large = Page(html="<b>" * 1_300_000, name="Large")
    first, second = await read_pages([large, Page(html=PAGE)], megabytes=700, seconds=300)
    assert (first.text, len(first.warnings)) == ("", 1)
    assert "given up" in first.warnings[0]
    assert "Rosa Quill" in second.text


async def test_each_content_is_read_once_and_has_an_id_up_to_the_limit() -> None:
    many = await read_pages([Page(html="", snippet=f"Page {number}") for number in range(MAX_PAGES + 2)])
    assert len({page.id for page in many}) == len(many) == MAX_PAGES
    assert "2 further pages were left out" in many[-1].warnings[-1]
    names = ["x", "y", "x", "x (2)", "x", "z"]
    pages = [Page(html="", name=name, snippet=str(number)) for number, name in enumerate(names)]
    found = await read_pages([*pages, replace(pages[0], name="again")])
    assert [page.id for page in found] == ["x", "y", "x (2)", "x (2) (2)", "x (3)", "z"]
