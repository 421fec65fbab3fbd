import json
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from random import Random

import pytest

from sleuth.studio.evaluation.run_folder import write_lines
from sleuth.tools.errors import UsageError
from training.questions import lines
from training.roles.data.mix import (
    LONGEST,
    MOST,
    SELDOM,
    SHARES,
    TOLD,
    UNTOLD,
    balance,
    main,
    mix_examples,
    tokens,
)
from training.roles.data.teacher import Example
from training.roles.data.wording import guided


def example(prompt: str, number: int, reply: str = "x", *, hops: int = 2, told: bool = True) -> Example:
    sent = ({"role": "user", "content": f"{number:<400}"},)
    role = prompt.split("/", maxsplit=1)[0]
    return Example(set="s", hops=hops, question="1", role=role, prompt=prompt, messages=sent, reply=reply, told=told)


def test_prompts_have_their_shares_of_the_tokens_in_a_mixed_order() -> None:
    found = [example(prompt, at) for prompt in ("reader/read", "planner/plan") for at in range(100)]
    kept = mix_examples(found, budget=5_400, seed=0)
    counts = Counter(each.prompt for each in kept)
    wanted = SHARES["reader/read"] / SHARES["planner/plan"]
    assert counts["reader/read"] == pytest.approx(wanted * counts["planner/plan"], rel=0.2)
    assert sum(map(tokens, kept)) == pytest.approx(5_400, rel=0.1)
    assert {each.prompt for each in kept[:30]} == {"reader/read", "planner/plan"}
    assert kept == mix_examples(found, budget=5_400, seed=0)
    assert kept != mix_examples(found, budget=5_400, seed=1)


def test_what_a_prompt_lacks_goes_to_the_others() -> None:
    found = [*(example("reader/read", at) for at in range(3)), *(example("planner/plan", at) for at in range(100))]
    counts = Counter(each.prompt for each in mix_examples(found, budget=5_000, seed=0))
    assert counts["reader/read"] == 3
    assert counts["planner/plan"] > 40


def test_none_twice_none_too_long_and_none_of_a_prompt_without_a_share() -> None:
    found = [example("reader/read", 1), example("reader/read", 1), example("host/reply", 1)]
    found.append(replace(found[0], messages=({"role": "user", "content": "long " * LONGEST},)))
    assert len(mix_examples(found, budget=1e6, seed=0)) == 1


def test_files_are_mixed_into_one(tmp_path: Path) -> None:
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for at, file in enumerate(files):
        write_lines(file, (asdict(example("reader/read", number)) for number in range(at, at + 3)))
    main(files, out=tmp_path / "mixed.jsonl", tokens=1e6)
    assert sorted(int(each.messages[0]["content"]) for each in lines(tmp_path / "mixed.jsonl", Example)) == [0, 1, 2, 3]
    files[0].write_text('{"question": 1}\n')
    for named, message in ((files, r"a\.jsonl, line 1: "), ([tmp_path / "none.jsonl"], "cannot be read")):
        with pytest.raises(UsageError, match=message):
            main(named, out=tmp_path / "mixed.jsonl", tokens=1e6)


def test_readers_learn_quotes_only_for_yes_and_no_without_quotes(tmp_path: Path) -> None:
    cited = ',"citations":[{"source":1,"quote":"Paris."}]}'
    replies = ['{"answerable":true,"answer":"Paris"' + cited, '{"answerable":true,"answer":"no"' + cited]
    found = [example("reader/read", at, reply) for at, reply in enumerate(replies)]
    other = example("extractor/extract", 3, replies[0])
    write_lines(tmp_path / "all.jsonl", map(asdict, [*found, other]))
    main([tmp_path / "all.jsonl"], out=tmp_path / "mixed.jsonl", tokens=1e6, quotes=False)
    learned = {each.messages[0]["content"].strip(): each.reply for each in lines(tmp_path / "mixed.jsonl", Example)}
    assert learned == {"0": '{"answerable":true,"answer":"Paris","citations":[]}', "1": replies[1], "3": replies[0]}


def test_mix_limits_unanswerable_one_hop_and_easy_examples() -> None:
    pool = [example("planner/plan", at, hops=1 + (at % 10 == 0)) for at in range(200)]
    alone = sum(each.hops == 1 for each in balance(pool, Random(0)))
    assert 1 <= alone <= 5
    for prompt in ("aggregator/aggregate", "reader/read", "reviewer/review"):
        order = balance([example(prompt, at, told=at % 2 == 0) for at in range(200)], Random(0))
        share = UNTOLD.get(order[0].role, SELDOM)
        assert sum(not each.told for each in order) == pytest.approx(share * len(order), abs=2)
    reviews = balance([example("reviewer/review", at, told=at % 10 > 0) for at in range(100)], Random(0))
    answered = sum(each.told for each in reviews) / len(reviews)
    assert len(reviews) > 20
    assert 1 - UNTOLD["reviewer"] - 0.05 <= answered <= TOLD["reviewer"] + 0.05
    assert len(balance([example("planner/begin", at) for at in range(500)], Random(0))) == MOST["planner/begin"]


SHORT = {"type": "object", "properties": {"status": {"const": "PASS"}}}
LONG = {"type": "object", "properties": {"question": {"type": "string"}, "status": {"const": "UNCONFIDENT"}}}


def test_a_reply_has_the_fields_of_its_label_in_the_order_of_the_schema() -> None:
    schema = {"anyOf": [SHORT, LONG]}
    assert guided('{"status":"PASS","question":""}', schema) == '{"status":"PASS"}'
    asked = guided('{"status":"UNCONFIDENT","question":"Où?"}', schema)
    assert asked == '{"question":"Où?","status":"UNCONFIDENT"}'
    assert guided("Yes", None) == "Yes"
    at_least_one = {"properties": {"citations": {"type": "array", "minItems": 1}}}
    assert json.loads(guided('{"citations":[]}', at_least_one)) == {"citations": [{"source": 1, "quote": ""}]}
