import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.storage.filters import EXAMPLE, Term, parse_filter

ROW = {
    "id": "reports/2025/Light.pdf",
    "title": "The Light of Pellowrig",
    "author": "Ada Brask, Edric O'Neil",
    "source": "/Users/ada/reports/2025/Light.pdf",
    "tags": ("contract", "signed copy"),
    "language": "en",
    "media_type": "application/pdf",
    "date": "2025-03-14",
    "added_at": "2026-01-02T10:00:00+00:00",
}
MATCHING = [
    "",
    "  ",
    "tag=contract",
    "TAG=Contract",
    'tag="signed copy"',
    '"tag=signed copy"',
    "tag:sign",
    "!tag=sign",
    "tag!=draft",
    "date=2025",
    "date=2025-03-14",
    "date>=2025-03-14 date<=2025-03",
    "date>2024 date<2026",
    "added:2026-01",
    "path:reports/**",
    "path:reports/*/light.pdf",
    "path:/users/**/*.pdf",
    "path:l?ght.pdf",
    "path:**/light.pdf",
    "path:ada/reports",
    "!path:archive/**",
    "type:pdf",
    "type=.pdf",
    "type=application/pdf",
    "title:LIGHT",
    'title="the light of pellowrig"',
    "author:brask",
    "author:o'neil",
    "language=en",
    "id:reports/2025",
]
OTHERS = [
    "tag=sign",
    "!tag=contract",
    "tag!=contract",
    "date>2025-03-14",
    "date<2025",
    "date=2024",
    "path:reports/*.pdf",
    "path:eports/**",
    "path:/reports/**",
    "path=light.pdf",
    "type:docx",
    "title=light",
    "language:e",
    "author:brask author:nobody",
]


@pytest.mark.parametrize("text", MATCHING)
def test_filter_matches(text: str) -> None:
    assert parse_filter(text).matches(ROW)


@pytest.mark.parametrize("text", OTHERS)
def test_filter_does_not_match(text: str) -> None:
    assert not parse_filter(text).matches(ROW)


META = {"client": "Ada Brask", "amount": "1200", "signed": "2025-03-04", "price": "100.0", "rent": "on request"}
OWN = {**dict.fromkeys(ROW, None), "meta": {**META, "crew": "Oda, Rosa Quill", "fees": "50, 150", "year": "2025"}}


@pytest.mark.parametrize(
    "text",
    [
        *(
            'client="ada brask"',
            "CLIENT:ada",
            "!client=Ada",
            "amount>=300",
            "amount<9999.5",
            "signed>2025-03",
            "!sum=5",
        ),
        *(
            "price=100",
            "price=1e2",
            "price<=100",
            "!price!=100",
            "!rent>=100",
            "!rent<=100",
            "!amount>=much",
            "rent>=on",
        ),
        *("crew=oda", 'crew="rosa quill"', 'crew="oda, rosa quill"', "!crew=rosa", "crew:rosa", "fees>=150", "fees=50"),
        *("signed>=2025", "signed<2026", "year<2025-06", "!fees=100"),
    ],
)
def test_own_field_is_compared_as_text_or_number(text: str) -> None:
    assert parse_filter(text).matches(OWN)
    assert not parse_filter(f"!{text}" if not text.startswith("!") else text[1:]).matches(OWN)


def test_field_that_no_document_has_is_refused() -> None:
    parse_filter("client=Ada date>=2025").check_fields({"client"})
    with pytest.raises(UnknownName, match=r"clint.*client"):
        parse_filter("clint=Ada").check_fields({"client"})


@pytest.mark.parametrize("text", ["tag=x", "date>=2000", "date<3000", "author:a", "language=en"])
def test_unknown_value_matches_only_a_negated_term(text: str) -> None:
    unknown = dict.fromkeys(ROW, None)
    assert not parse_filter(text).matches(unknown)
    assert parse_filter(f"!{text}").matches(unknown)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("contract", "not FIELD=VALUE"),
        ("tag=", "not FIELD=VALUE"),
        ('tag="open', "not closed"),
        ("date>=yesterday", "needs a date"),
        ("date=2025-13", "needs a date"),
        ("date=25", "needs a date"),
        ("tag>=a", "does not work with tag"),
        ("tag=" + "x" * 3000, "characters"),
    ],
)
def test_unusable_filter_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_filter(text)


def test_example_can_be_parsed() -> None:
    assert len(parse_filter(EXAMPLE).terms) == 4


@pytest.mark.parametrize(
    "pattern", ["**" * 30, "**/" * 60, "*a" * 500, "**a" * 400, "?*" * 400, "**/*a" * 300, "*/**a*" * 200]
)
def test_path_pattern_of_many_wildcards_ends(pattern: str) -> None:
    row = {**ROW, "source": "/srv/" + "a" * 200 + "/aaa" * 500}
    assert not parse_filter(f"path:{pattern}x").matches(row)


@given(
    pattern=st.text("ab/*?", min_size=1, max_size=8).map(lambda text: re.sub(r"(?<=[^/])\*\*+/|\*{3,}", "*/", text)),
    path=st.text("ab/", max_size=8),
)
@example(pattern="**a*b", path="a/ab")
@example(pattern="a**/*b/**", path="x/a/c/b/")
def test_path_pattern_matches_as_its_definition(pattern: str, path: str) -> None:
    wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    body = "".join(wild.get(part) or re.escape(part) for part in re.split(r"(\*\*/?|\*|\?)", pattern))
    expected = re.fullmatch(body if pattern.startswith("/") else f"(?:.*/)?{body}", path) is not None
    condition = Term("path", ":", pattern)
    if "*" in pattern or "?" in pattern:
        assert condition.matches({"source": path}) == expected
