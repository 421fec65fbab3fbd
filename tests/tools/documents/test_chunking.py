import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.tools.documents.chunking import BLOCK_CHARS, CHUNK_CHARS, HEADING_CHARS, split

SENTENCE = "The mill at Arden was built by Rosa Quill in 1843. "
MEDIA_TYPES = ["text/plain", "text/markdown", "text/html", "application/pdf", "text/csv"]

LINES = st.sampled_from(
    ["# Arden", "## The mill", "### ", "| a | b |", "|---|---|", "- item", "> said", "```", "    code", "Arden", "---"]
)
PIECES = st.one_of(LINES, st.text(max_size=60), st.sampled_from([SENTENCE * 8, SENTENCE, "é" * 900, "日本語。" * 90]))
TEXTS = st.one_of(
    st.text(max_size=3000),
    st.lists(PIECES, max_size=30).map("\n".join),
    st.lists(PIECES, max_size=30).map("\n\n".join),
)


@given(text=TEXTS, media_type=st.sampled_from(MEDIA_TYPES))
def test_spans_cover_the_text_in_order_and_within_the_limit(text: str, media_type: str) -> None:
    spans = split(text, media_type)
    covered, last = [], 0
    for start, end in spans:
        assert last <= start < end <= len(text)
        assert text[last:start].strip() == "", "characters were left out"
        assert text[start:end] == text[start:end].strip()
        assert end - start <= CHUNK_CHARS + HEADING_CHARS
        covered.append(text[start:end])
        last = end
    assert text[last:].strip() == ""
    assert "".join("".join(covered).split()) == "".join(text.split())


def passages(text: str, media_type: str = "text/markdown") -> list[str]:
    return [text[start:end] for start, end in split(text, media_type)]


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_prose_is_cut_after_sentences(media_type: str) -> None:
    words = (SENTENCE * 60).split()
    hard_wrapped = "\n".join(" ".join(words[i : i + 13]) for i in range(0, len(words), 13))
    for text in [SENTENCE * 60] if media_type == "text/csv" else [SENTENCE * 60, hard_wrapped]:
        found = passages(text, media_type)
        assert len(found) > 3
        assert all(passage.startswith("The mill") and passage.endswith("1843.") for passage in found)


def test_a_heading_goes_with_what_it_heads() -> None:
    text = f"# Arden\n\n{SENTENCE * 5}\n\n## People\n\n### Keepers\n\n{SENTENCE * 30}"
    found = passages(text)
    assert found[0].startswith("# Arden\n\nThe mill")
    assert found[1].startswith("## People\n\n### Keepers\n\nThe mill")
    assert not any(passage.rstrip().splitlines()[-1].startswith("#") for passage in found)
    unmarked = f"{SENTENCE * 14}\n\nThe keepers\n\n{SENTENCE * 10}"
    assert [passage[:11] for passage in passages(unmarked, "application/pdf")] == ["The mill at", "The keepers"]


def test_headings_that_would_make_a_passage_too_long_stay_where_they_are() -> None:
    headings = "\n\n".join(f"## {'Keepers of the mill and the weir ' * 2}{i}" for i in range(8))
    found = passages(f"Short.\n\n{headings}\n\n{SENTENCE * 15}", "text/plain")
    assert found[0].startswith("Short.\n\n## Keepers")
    assert found[1].startswith("The mill")


def test_the_next_section_starts_a_passage() -> None:
    text = f"# Arden\n\n{SENTENCE * 10}\n\n# Brock\n\n{SENTENCE * 10}"
    assert [passage[:7] for passage in passages(text)] == ["# Arden", "# Brock"]
    assert passages("# Arden\n\nA town.\n") == ["# Arden\n\nA town."]


def test_a_table_that_fits_stays_in_one_piece() -> None:
    table = "| Keeper | Years |\n| --- | --- |\n" + "\n".join(f"| Keeper {i} | 18{i} |" for i in range(10, 30))
    found = passages(f"{SENTENCE * 8}\n\n{table}\n\n{SENTENCE * 8}")
    assert any(table in passage for passage in found)


def test_a_long_table_is_cut_between_rows() -> None:
    rows = [f"| Keeper {i} | 18{i} | of the mill and the weir |" for i in range(10, 99)]
    found = passages("\n".join(["| Name | From | What |", "| --- | --- | --- |", *rows]))
    assert len(found) > 3
    assert [line for passage in found for line in passage.splitlines()][2:] == rows

    lines = [f"name: Keeper {i}; year: 18{i}; place: the mill at Arden by the weir; note: none" for i in range(10, 99)]
    found = passages("\n".join(lines), "text/csv")
    assert [line for passage in found for line in passage.splitlines()] == lines


def test_text_without_boundaries_is_cut() -> None:
    assert [len(passage) for passage in passages("x" * 2000, "text/plain")] == [CHUNK_CHARS, CHUNK_CHARS, 400]
    text = "word " * (BLOCK_CHARS // 3) + "x" * (BLOCK_CHARS + 7)
    assert "".join(passages(text, "text/plain")).replace(" ", "") == text.replace(" ", "")
