import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from linear_time import takes_linear_time

from sleuth.agents.formatting import LabeledSource, Source, format_references, format_sources
from sleuth.agents.llm.quote_grammar import MOST_CHARS, MOST_PATTERN, constrain_quotes
from sleuth.agents.model import Message
from sleuth.agents.role import Role
from sleuth.agents.roles.hybrid import RESOLVE_PLAIN
from sleuth.agents.roles.judging import REVIEW
from sleuth.agents.roles.planning import ACT
from sleuth.agents.roles.reading import DRAFT, READ
from sleuth.agents.roles.reasoning import REASON
from sleuth.graphs.evidence.text_spans import find_quote
from sleuth.tools.text.normalization import sanitize

VARN = Source(
    title="Varn",
    text="Varn (pop. 4,120) is a town on the Isk, founded by Ada Lund in 1604. It has 3 piers; two are of stone.",
)
ISK = Source(title="Isk", text="| River | Length |\n| --- | --- |\n| Isk | 212 km |")


def prompt(*sources: Source) -> list[Message]:
    return [
        Message(role="system", content="Read."),
        Message(role="user", content=f"{format_sources(sources)}\n\nWhere?"),
    ]


def allows(schema: dict[str, Any], source: int, quote: str) -> bool:
    """Return whether the grammar allows a citation."""
    own = {"$defs": schema["$defs"], "$ref": "#/$defs/Quote"}
    return jsonschema.Draft202012Validator(own).is_valid({"source": source, "quote": quote})


def guided(*sources: Source) -> dict[str, Any]:
    return constrain_quotes(DRAFT.schema() or {}, prompt(*sources))


@pytest.mark.parametrize(
    ("source", "quote", "allowed"),
    [
        (1, "Varn (pop. 4,120) is a town on the Isk, founded by Ada Lund in 1604.", True),
        (1, "Varn (pop. 4,120)", True),
        (1, "founded by Ada Lund", True),
        (1, "is a town on the Isk", True),
        (1, "It has 3 piers; two", True),
        (1, "two are of stone.", True),
        (2, "Isk | 212 km", True),
        (2, "212 km |", True),
        (2, "founded by Ada Lund", False),  # of another source
        (3, "Varn (pop. 4,120)", False),  # of none
        (1, "founded by Ada Lind", False),
        (1, "Ada Lund in 1604", False),  # from the middle
        (1, "founded by Ada Lu", False),
        (1, "Varn", False),  # too short
        (1, "", False),
    ],
)
def test_grammar_allows_only_the_beginning_of_a_clause_or_cell(source: int, quote: str, allowed: bool) -> None:
    assert allows(guided(VARN, ISK), source, quote) is allowed


@pytest.mark.parametrize("role", [READ, DRAFT, REVIEW, REASON, ACT], ids=lambda role: role.prompt)
def test_grammar_constrains_every_role_that_quotes(role: Role[Any, Any]) -> None:
    schema = role.schema() or {}
    own = constrain_quotes(schema, prompt(VARN))
    assert not allows(own, 1, "founded by Ada Lind") and allows(schema, 1, "founded by Ada Lind")
    assert own | {"$defs": schema["$defs"]} == schema, "everything but quotes is unchanged"
    assert own["$defs"].keys() == schema["$defs"].keys()


def test_grammar_allows_a_heading_only_without_other_text() -> None:
    text = "# A town on the Isk\n\nIt has three piers."
    schema = guided(Source(title="Varn", text=text), Source(title="Isk", text="# A town on the Isk"))
    assert [allows(schema, source, "# A town on the Isk") for source in (1, 2)] == [False, True]
    assert allows(schema, 1, "It has three piers.")


def test_grammar_of_no_text_and_of_too_many_sources_is_unchanged() -> None:
    # llguidance refuses a grammar that is too large, and the whole call with it.
    text = " ".join(f"Ferry {at}, built in {1600 + at}, that crosses the Isk." for at in range(40))
    schema, source = DRAFT.schema() or {}, Source(title="t", text=text)
    assert guided(*[source] * 4) != schema
    assert guided(*[source] * 21) == guided(Source(title="Empty", text="")) == guided() == schema


def test_grammar_of_other_references_is_unchanged() -> None:
    references = (VARN, LabeledSource(title="get_length", text="{'km': 212}", kind="graph"))
    messages = [Message(role="user", content=f"{format_references(references)}\n\nHow long?")]
    assert constrain_quotes(RESOLVE_PLAIN.schema() or {}, messages) == RESOLVE_PLAIN.schema()


@example("?[")
@example("猫。犬。鸟在树上唱歌。")
@given(st.text(alphabet="ab ,.()[]{}|\\\"'*+?^$\n\t –é中", max_size=400))
def test_grammar_allows_only_text_of_the_source(text: str) -> None:
    source = Source(title="t", text=text)
    schema = constrain_quotes(DRAFT.schema() or {}, prompt(source))
    if schema == DRAFT.schema():
        assert not re.sub(r"[\s'\"]", "", text)
        return
    [copies] = schema["$defs"]["Quote"]["anyOf"]
    pattern = copies["properties"]["quote"]["pattern"]
    json.dumps(schema)
    longest = [re.sub(r"\\(.)|\(\?:|\)\?", lambda found: found[1] or "", each) for each in _alternatives(pattern)]
    for quote in longest:
        assert re.search(pattern, quote) and find_quote(quote, text) and len(quote) <= MOST_CHARS


def _alternatives(pattern: str) -> list[str]:
    """Return the outermost alternatives of a pattern."""
    return re.findall(r"(?:\\.|[^|\\])+", pattern.removeprefix("^(?:").removesuffix(")$"))


def test_grammar_of_long_clauses_and_scripts_without_spaces() -> None:
    schema = guided(Source(title="t", text="word " * 100), Source(title="t", text="中" * 60))
    assert allows(schema, 1, ("word " * 48).strip()) and not allows(schema, 1, ("word " * 49).strip())
    assert allows(schema, 2, "中" * 24) and allows(schema, 2, "中" * 60) and not allows(schema, 2, "文" * 24)


@pytest.mark.parametrize("piece", [", ", "a. ", "A. B. ", "a, ", " and", "<source 1>\na\n"])
def test_constrain_quotes_of_hostile_passage_takes_linear_time(piece: str) -> None:
    schema = READ.schema() or {}

    def narrow(size: int) -> None:
        constrain_quotes(schema, prompt(Source(title="Varn", text=piece * (size // len(piece)))))

    assert takes_linear_time(narrow)


PIECES = st.sampled_from([" .", ". ", "1 ", "| 7 ", "a, ", "\n", "(b) ", "Ada Lund ", "é", "的", "x" * 30, "\\", '"'])
TEXTS = st.one_of(
    st.text(max_size=2_000),
    st.lists(PIECES, max_size=300).map("".join),
    st.tuples(PIECES, st.integers(0, 10_000)).map(lambda repeated: repeated[0] * repeated[1]),
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=1), max_size=600).map(" | ".join),
)


@settings(max_examples=10, deadline=None)
@given(TEXTS)
@example("4.3 DER functions" + " ." * 60)
@example(" | ".join("1234567890" * 6))
@example(". ".join("abcdefghij" * 1_000))
def test_any_text_gives_a_small_grammar_that_compiles(text: str) -> None:
    xgrammar = pytest.importorskip("xgrammar", reason="the embedded model server is not installed")
    llguidance = pytest.importorskip("llguidance", reason="the embedded model server is not installed")
    schema = json.dumps(guided(Source(title="Varn", text=sanitize(text))))
    assert len(schema) < 2 * MOST_PATTERN
    assert "root ::=" in str(xgrammar.Grammar.from_json_schema(schema))
    grammar = llguidance.LLMatcher.grammar_from_json_schema(schema)
    assert not llguidance.LLMatcher.validate_grammar(grammar)


def test_a_long_text_is_quoted_from_the_beginnings_of_its_sentences() -> None:
    text = " ".join(
        f"In {year}, the mill of Varn was sold, and Ada Lund moved to the Isk." for year in range(1000, 1250)
    )
    own = guided(Source(title="Varn", text=text))
    assert allows(own, 1, "In 1249, the mill of Varn was sold")
    assert not allows(own, 1, "the mill of Varn was sold")
