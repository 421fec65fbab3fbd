import json
import re
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.agents.formatting import LabelledSource, Source, format_references, format_sources
from sleuth.agents.llm.quote_grammar import MOST_CHARS, constrain_quotes
from sleuth.agents.model import Message
from sleuth.agents.role import Role
from sleuth.agents.roles.hybrid import RESOLVE_PLAIN
from sleuth.agents.roles.judging import REVIEW
from sleuth.agents.roles.planning import ACT
from sleuth.agents.roles.reading import DRAFT, READ, DraftInput
from sleuth.agents.roles.reasoning import REASON
from sleuth.graphs.evidence.text_spans import locate
from sleuth.studio.simulation.wording import quote_clause
from sleuth.tools.text.normalization import sentences

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
    """Whether a guided citation can be this one."""
    own = {"$defs": schema["$defs"], "$ref": "#/$defs/Quote"}
    return jsonschema.Draft202012Validator(own).is_valid({"source": source, "quote": quote})


def guided(*sources: Source) -> dict[str, Any]:
    return constrain_quotes(DRAFT.schema() or {}, prompt(*sources))


@pytest.mark.parametrize(
    ("source", "quote"),
    [
        (1, "Varn (pop. 4,120) is a town on the Isk, founded by Ada Lund in 1604."),
        (1, "Varn (pop. 4,120)"),
        (1, "founded by Ada Lund"),
        (1, "is a town on the Isk"),
        (1, "It has 3 piers; two"),
        (1, "two are of stone."),
        (2, "Isk | 212 km"),
        (2, "212 km |"),
    ],
)
def test_a_quote_may_be_the_beginning_of_any_clause_or_cell(source: int, quote: str) -> None:
    assert allows(guided(VARN, ISK), source, quote)


@pytest.mark.parametrize(
    ("source", "quote"),
    [
        (2, "founded by Ada Lund"),  # of another source
        (3, "Varn (pop. 4,120)"),  # of none
        (1, "founded by Ada Lind"),
        (1, "Ada Lund in 1604"),  # from the middle
        (1, "founded by Ada Lu"),
        (1, "Varn"),  # too little to say anything
        (1, ""),
    ],
)
def test_nothing_else_may_be_quoted(source: int, quote: str) -> None:
    assert not allows(guided(VARN, ISK), source, quote)


@pytest.mark.parametrize("role", [READ, DRAFT, REVIEW, REASON, ACT], ids=lambda role: role.prompt)
def test_every_role_that_reads_and_quotes_is_guided(role: Role[Any, Any]) -> None:
    schema = role.schema() or {}
    own = constrain_quotes(schema, prompt(VARN))
    assert not allows(own, 1, "founded by Ada Lind") and allows(schema, 1, "founded by Ada Lind")
    assert own | {"$defs": schema["$defs"]} == schema, "what is not a quote stays"
    assert own["$defs"].keys() == schema["$defs"].keys()


def test_a_prompt_without_sources_changes_nothing() -> None:
    schema = READ.schema() or {}
    assert (
        constrain_quotes(schema, prompt()) == constrain_quotes(schema, prompt(Source(title="Empty", text=""))) == schema
    )


def test_a_heading_is_quoted_only_where_there_is_nothing_else() -> None:
    text = "# A town on the Isk\n\nIt has three piers."
    schema = guided(Source(title="Varn", text=text), Source(title="Isk", text="# A town on the Isk"))
    assert [allows(schema, source, "# A town on the Isk") for source in (1, 2)] == [False, True]
    assert allows(schema, 1, "It has three piers.")


def test_more_than_a_server_can_take_is_not_guided() -> None:
    """llguidance refuses a grammar that is too big, and with it the whole call."""
    text = " ".join(f"Ferry {at}, built in {1600 + at}, that crosses the Isk." for at in range(40))
    schema, source = DRAFT.schema() or {}, Source(title="t", text=text)
    assert constrain_quotes(schema, prompt(*[source] * 4)) != schema
    assert constrain_quotes(schema, prompt(*[source] * 400)) == schema


def test_references_of_other_kinds_can_be_quoted_as_ever() -> None:
    references = (VARN, LabelledSource(title="get_length", text="{'km': 212}", kind="graph"))
    messages = [Message(role="user", content=f"{format_references(references)}\n\nHow long?")]
    assert constrain_quotes(RESOLVE_PLAIN.schema() or {}, messages) == RESOLVE_PLAIN.schema()


def test_what_the_embedded_model_has_learned_to_quote_is_allowed() -> None:
    schema = guided(VARN)
    for sentence in sentences(VARN.text):
        for answer in ("Isk", "Ada Lund", "1604", "4,120", "stone", "3"):
            if answer in sentence:
                assert allows(schema, 1, quote_clause(sentence, answer)), (sentence, answer)


@given(st.text(alphabet="ab ,.()[]{}|\\\"'*+?^$\n\t –é中", max_size=400))
def test_whatever_may_be_quoted_stands_in_its_source(text: str) -> None:
    source = Source(title="t", text=text)
    schema = constrain_quotes(DRAFT.schema() or {}, prompt(source))
    if schema == DRAFT.schema():
        assert not re.sub(r"[\s'\"]", "", text)
        return
    [copies] = schema["$defs"]["Quote"]["anyOf"]
    pattern = copies["properties"]["quote"]["pattern"]
    json.dumps(schema)
    longest = [re.sub(r"\\(.)", r"\1", re.sub(r"(?<!\\)(\(\?:|\)\?)", "", way)) for way in _ways(pattern)]
    for quote in longest:
        assert re.search(pattern, quote) and locate(quote, text) and len(quote) <= MOST_CHARS


def _ways(pattern: str) -> list[str]:
    """The alternatives of a pattern, at its outermost level."""
    return re.split(r"(?<!\\)\|", pattern.removeprefix("^(?:").removesuffix(")$"))


def test_a_long_clause_is_cut_where_a_quote_has_no_more_room() -> None:
    text = "word " * 100
    schema = guided(Source(title="t", text=text))
    assert allows(schema, 1, ("word " * 48).strip()) and not allows(schema, 1, ("word " * 49).strip())


def test_script_without_spaces_is_quoted_by_its_beginning() -> None:
    schema = guided(Source(title="t", text="中" * 60))
    assert allows(schema, 1, "中" * 24) and allows(schema, 1, "中" * 60) and not allows(schema, 1, "文" * 24)


def test_a_draft_is_rendered_as_the_sources_are_read_back() -> None:
    values = DRAFT.render(DraftInput(question="Who?", sources=(VARN, ISK)))
    assert values["sources"] == format_sources((VARN, ISK))


@pytest.mark.parametrize("piece", [", ", "a. ", "A. B. ", "a, ", " and", "<source 1>\na\n"])
def test_narrowed_of_a_hostile_passage_takes_linear_time(piece: str) -> None:
    passage = Source(title="Varn", text=piece * (100_000 // len(piece)))
    started = time.process_time()
    constrain_quotes(READ.schema() or {}, prompt(passage))
    assert time.process_time() - started < 30, "quadratic time is many minutes"
