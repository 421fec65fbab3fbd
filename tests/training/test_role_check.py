"""Scores of replies to held-out examples."""

from typing import Any

import pytest

from sleuth.agents.formatting import Source, format_sources
from sleuth.agents.model import Reply, TokenLogprob
from training.roles.check import Checked, score_reply, table, thresholds

SOURCES = format_sources(
    (Source(title="Ghent", text="Ghent is a city."), Source(title="Mara", text="Mara was born in Ghent."))
)
WANTED = '{"answer":"Ghent","citations":[{"source":2,"quote":"born in Ghent"}],"answerable":true}'


def row(prompt: str, reply: str) -> dict[str, Any]:
    return {"prompt": prompt, "messages": [{"role": "user", "content": f"{SOURCES}\n\nQuestion: x"}], "reply": reply}


def reply(text: str, *, finish: str = "stop", top: dict[str, float] | None = None) -> Reply:
    logprobs = [TokenLogprob(token=text, logprob=-0.1, top=top)] if top else None
    usage = {"prompt_tokens": 1, "cached_tokens": 0, "completion_tokens": 1}
    return Reply(text=text, finish=finish, model="m", usage=usage, seconds=0.0, logprobs=logprobs, warnings=[])  # type: ignore[typeddict-item]


def test_the_wanted_reply_is_valid_exact_and_its_citation_resolves() -> None:
    found = score_reply(row("reader/read", WANTED), reply(WANTED))
    assert found == Checked(
        prompt="reader/read", valid=True, exact=True, f1=1.0, citations=1, resolved=1, p_yes=None, yes=False
    )


@pytest.mark.parametrize(
    ("citation", "resolves"),
    [
        ('{"source":2,"quote":"BORN  in ghent"}', (1, 1)),
        ('{"source":1,"quote":"born in Ghent"}', (1, 0)),
        ('{"source":3,"quote":"born in Ghent"}', (1, 0)),
        ('{"source":2,"quote":"born in Bruges"}', (1, 0)),
        ('{"source":1,"quote":""}', (0, 0)),
    ],
)
def test_citation_resolves_if_its_source_contains_it(citation: str, resolves: tuple[int, int]) -> None:
    said = f'{{"answer":"the city of Ghent","citations":[{citation}],"answerable":true}}'
    found = score_reply(row("reader/read", WANTED), reply(said))
    assert (found["citations"], found["resolved"]) == resolves
    assert not found["exact"]
    assert found["f1"] == pytest.approx(0.5)


@pytest.mark.parametrize(("text", "finish"), [(WANTED[:-9], "length"), (WANTED[:-9], "stop"), ("Ghent", "stop")])
def test_what_was_cut_off_or_is_no_json_is_not_valid_and_answers_nothing(text: str, finish: str) -> None:
    found = score_reply(row("reader/read", WANTED), reply(text, finish=finish))
    assert (found["valid"], found["exact"], found["f1"], found["citations"]) == (False, False, 0.0, 0)


def test_yes_or_no_is_read_off_the_first_token() -> None:
    found = score_reply(row("evaluator/evidence", "Yes"), reply("Yes", top={"Yes": -0.2231, "No": -1.6094}))
    assert found["p_yes"] == pytest.approx(0.8, abs=1e-3)
    assert (found["exact"], found["yes"]) == (True, True)


def test_a_table_has_shares_by_prompt_and_over_all() -> None:
    own = [score_reply(row("reader/read", WANTED), reply(text)) for text in (WANTED, WANTED, "no")]
    found = table([*own, score_reply(row("evaluator/evidence", "No"), reply("Yes", top={"Yes": -0.1}))])
    assert found["reader/read"] == {
        "examples": 3, "valid": 0.6667, "exact": 0.6667, "f1": 0.6667, "citations": 2, "resolved": 1.0
    }  # fmt: skip
    assert found["evaluator/evidence"]["exact"] == 0.0
    assert (found["all"]["examples"], found["all"]["valid"]) == (4, 0.75)


def asked(chance: float, *, yes: bool, prompt: str = "p") -> Checked:
    return Checked(prompt=prompt, valid=True, exact=True, f1=None, citations=0, resolved=0, p_yes=chance, yes=yes)


def test_the_threshold_is_where_yes_and_no_part_best() -> None:
    chances = [(0.9, True), (0.6, True), (0.7, False), (0.2, False), (0.1, False)]
    mixed = [asked(chance, yes=yes) for chance, yes in chances]
    alone = [asked(0.9, yes=True, prompt="one kind only")]
    found = thresholds([*mixed, *alone])
    assert found.keys() == {"p"}
    assert found["p"]["examples"] == 5
    assert found["p"]["auroc"] == pytest.approx(5 / 6, abs=1e-3)
    assert 0.2 < found["p"]["threshold"] < 0.6
    assert thresholds([asked(0.0, yes=False), asked(1.0, yes=True)])["p"]["auroc"] == 1.0
