import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_time import takes_linear_time

from sleuth.tools.sources.web_pages.page import MAX_MARKUP, visible_markup

TAGS = st.sampled_from(
    ["<script>", "</script>", "<STYLE", "</style >", "<!--", "-->", "<svg>", "</svg>", "text", "<p>", ">"]
)


@pytest.mark.parametrize(
    ("html", "left"),
    [
        ("a<script>var x = '<p>no';</script >b", "ab"),
        ("a<STYLE type=x>p {}</Style\n>b", "ab"),
        ("a<!-- <p>no --> b", "a b"),
        ("a<svg><title>no</title></svg><noscript>no</noscript>b", "ab"),
        ("a<script>no", "a"),
        ("a<!-- no", "a"),
        ("a<svg><p>b", "a><p>b"),
        ("<scripted>b", "<scripted>b"),
        ('<img src="data:image/png;base64,AAAA=">', '<img src="">'),
    ],
)
def test_what_nobody_sees_goes(html: str, left: str) -> None:
    assert visible_markup(html) == (left, [])


@given(st.lists(TAGS, max_size=30).map("".join))
def test_no_script_is_left(html: str) -> None:
    left, _ = visible_markup(html)
    assert "<script>" not in left and "<!--" not in left


def test_long_page_is_cut_before_a_tag_with_a_warning() -> None:
    left, warnings = visible_markup("<p>word</p>" * (MAX_MARKUP // 8))
    assert MAX_MARKUP - 10 < len(left) <= MAX_MARKUP
    assert left.endswith(("word", "</p>"))
    assert len(warnings) == 1 and "only the first" in warnings[0]


@pytest.mark.parametrize("piece", ["<script ", "<script></scrip", "<!--", "<style></style", "data:a/a;base64,", "<"])
def test_soup_takes_time_in_proportion(piece: str) -> None:
    assert takes_linear_time(lambda size: visible_markup(piece * (size // len(piece))))
