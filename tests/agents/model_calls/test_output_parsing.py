import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_time import takes_linear_time
from pydantic import Field
from scripted_model import reply

from sleuth.agents.model import Sampling
from sleuth.agents.model_calls.output_parsing import MAX_CHARS, Unparsable, parse, parse_reply
from sleuth.agents.role import Input, Output, Role


class Fact(Output):
    name: str
    years: list[int] = Field(default_factory=list)


FACT = Fact(name="Oda", years=[1871])
JSON = '{"name": "Oda", "years": [1871]}'


@pytest.mark.parametrize(
    "text",
    [
        JSON,
        f"```json\n{JSON}\n```",
        f"Here it is:\n```\n{JSON}\n```\nI hope it helps.",
        f"Sure! {JSON} Anything else?",
        f"<think>maybe {{not this}}</think>{JSON}",
        f"<think>{{}}</think>\n<THINKING>x</THINKING>\n{JSON}",
        f"the opening tag was in the prompt</think>{JSON}",
        '{"name": "Oda", "years": [1871,],}',
        '{"Name": "Oda", "YEARS": [1871]}',
        f'{{"other": 1}} {JSON}',
        f"a set {{1, 2}} of numbers, then {JSON}",
        '{"name": "Oda", "years": [1871], "mood": "good"}',
        f'{{"name": "Oda}} then {JSON}',
        f'[he said "yes] {JSON}',
        f'{{"found": {JSON}, and more}}',
    ],
)
def test_parse_finds_json_in_surrounding_text(text: str) -> None:
    assert parse(text, Fact) == FACT


DRAFT = '{"name": "Nobody"}'
HARMONY = "<|channel|>analysis<|message|>Perhaps {}<|end|><|start|>assistant<|channel|>final<|message|>{}"


@pytest.mark.parametrize(
    "text",
    [
        f"First draft: {DRAFT}\nWait, better:\n{JSON}",
        f"{DRAFT} No: {DRAFT} Finally: {JSON} I am {{sure}} [1].",
        f"<think>{DRAFT}</think>{JSON}",
        f"I would say {DRAFT}.\n</think>\n\n{JSON}",
        f"[THINK]{DRAFT}[/THINK]{JSON}",
        HARMONY.format(DRAFT, JSON),
        f"{JSON}<think>or {DRAFT}",
        f"{JSON}\n{DRAFT}",  # the model did not stop
        f"<think>{'[1] ' * 600}{DRAFT}</think>{JSON}",
    ],
    ids=range(9),
)
def test_parse_takes_the_last_json_after_the_thoughts(text: str) -> None:
    assert parse(text, Fact) == FACT


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("<think>and then", "empty"),
        (f"<think>a</think><think>{JSON}", "empty"),
        (HARMONY.partition("<|end")[0].format(JSON), "empty|no complete JSON"),
        ("I do not know.", "no complete JSON"),
        ('{"name": "Od', "no complete JSON"),
        ('{"years": []}', "name: Field required"),
        ('{"name": {"first": "x", "last": "y"}}', "name: Input should be a valid string"),
        ("[1, 2]", "the whole"),
        ("[" * 2_000, "no complete JSON"),
        (f'{{"name": "Oda", "years": [{"9" * 5_000}]}}', "no complete JSON"),
        (f"{JSON}{' ' * MAX_CHARS}", f"longer than {MAX_CHARS:,} characters"),
    ],
    ids=range(12),
)
def test_parse_of_invalid_reply_raises_with_reason(text: str, reason: str) -> None:
    with pytest.raises(Unparsable, match=reason):
        parse(text, Fact)


class Step(Output):
    question: str = Field(max_length=5)


class Steps(Output):
    steps: list[Step] = Field(max_length=2)
    reason: str = Field(default="", max_length=8)


STEPS = Role("tests/steps", Input, Steps, Sampling(max_tokens=9))


def test_texts_and_lists_beyond_their_limits_are_cut() -> None:
    said = {"steps": [{"question": "Where?"}, {"question": "Who?"}, {"question": 1}], "Reason": "because it is so"}
    output, cuts = parse_reply(STEPS, reply(json.dumps(said)))
    assert output == Steps(steps=[Step(question="Where"), Step(question="Who?")], reason="because ")
    assert sorted(cuts) == [
        "reason was cut from 16 to 8 characters",
        "steps was cut from 3 to 2 entries",
        "steps.0.question was cut from 6 to 5 characters",
    ]
    with pytest.raises(Unparsable, match="steps: Field required"):
        parse_reply(STEPS, reply('{"reason": "because it is so"}'))
    output, cuts = parse_reply(STEPS, reply('{"steps": [{"question": {}}, {"question": "Where?"}]}'))
    assert output == Steps(steps=[Step(question="Where")])
    assert cuts[0].startswith("steps.0.question was dropped")


def test_parse_of_cut_off_reply_needs_complete_json() -> None:
    with pytest.raises(Unparsable, match="be shorter"):
        parse('{"name": "Oda", "years": [18', Fact, cut_off=True)
    with pytest.raises(Unparsable, match="while thinking"):
        parse("<think>I wonder", Fact, cut_off=True)
    assert parse(f"{JSON} and more chat that was cut o", Fact, cut_off=True) == FACT


def test_parse_of_plain_text_removes_thoughts_and_fences() -> None:
    assert parse("<think>hm</think>\n```\nOda, 1871\n```", str) == "Oda, 1871"
    assert parse(' "Oda" ', str) == '"Oda"'


@pytest.mark.parametrize("text", ["yes", " Yes. ", '"YES"', "**yes**", "<think>no</think> yes!"])
def test_parse_matches_normalized_choices(text: str) -> None:
    assert parse(text, str, choices=("yes", "no")) == "yes"


@pytest.mark.parametrize("text", ["yesterday", "yes and no", "maybe", "unsure, no"])
def test_parse_rejects_partial_choices(text: str) -> None:
    with pytest.raises(Unparsable, match="exactly one of yes, no"):
        parse(text, str, choices=("yes", "no"))


values = st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(st.text() | values.map(json.dumps))
def test_parse_of_any_text_returns_or_raises_unparsable(text: str) -> None:
    try:
        assert isinstance(parse(text, Fact), Fact)
    except Unparsable as fault:
        assert str(fault)


@pytest.mark.parametrize(
    "piece",
    [
        *("[", '{"', '"\\', '["', '{"a":', '["\\"', "[{", "[[],", '["" ""]', "[1,],", "[, ", "<think>", "</think"),
        *("\n```", "[ ", '{"x '),
    ],
)
@pytest.mark.parametrize("wrapping", [("", ""), ("[", "x]"), ("[" * 200, "]" * 200)], ids=["bare", "list", "nested"])
def test_parse_of_hostile_text_takes_linear_time(piece: str, wrapping: tuple[str, str]) -> None:
    before, after = wrapping

    def refuse(size: int) -> None:
        with pytest.raises(Unparsable):
            parse(f"{before}{piece * (size // len(piece))}{after}", Fact)

    assert takes_linear_time(refuse)


def test_parse_of_escapes_returns_storable_text() -> None:
    assert parse('{"name": "a,] and ,}"}', Fact).name == "a,] and ,}"
    fact = parse('{"name": "a\\u0000b \\ud83d\\ude00 \\ud83d \\\\u0000", "\\u0000years": [1]}', Fact)
    assert fact == Fact(name="ab \U0001f600 \ufffd \\u0000", years=[1])
