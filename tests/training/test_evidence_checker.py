from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
import torch
from checker import TOKENIZER, tiny_encoder
from json_lines import write_rows
from safetensors.torch import load_file

from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker import Evidence, EvidenceChecker
from sleuth.tools.evidence_checker.checker import Floats, Ids, Run
from sleuth.tools.evidence_checker.inputs import Layout
from training.evidence_checker.batches import Row, batches, collate, encode
from training.evidence_checker.examples import (
    Example,
    compose,
    epoch,
    negative,
    occurrences,
    plain,
)
from training.evidence_checker.export import convert
from training.evidence_checker.model import from_pretrained
from training.evidence_checker.sources import Item, of_part, read_items, read_worlds
from training.evidence_checker.train import CHECKPOINT, WEIGHTS, Plan, train

LAYOUT = Layout(TOKENIZER)
FERRY = Evidence(title="Ferry", text="The ferry was built by Oda Brask in 1911. It sank off Kestrow in 1934.")
BRASK = Evidence(title="Oda Brask", text="Oda Brask was born in Kestrow. She built ferries.")
RAIN = Evidence(title="Rain", text="Rain falls on the ferry when it is built.")
ASKED = Item(
    set="squad", id="1", part="train", text="When was the ferry by Oda Brask built?", kind="span", answers=("1911",),
    gold=(FERRY,), others=(RAIN, BRASK),
)  # fmt: skip
HOPS = replace(ASKED, set="2wiki", answers=("Kestrow",), gold=(FERRY, BRASK), others=(RAIN,))
CLAIM = replace(ASKED, set="fever", text="Oda Brask built it in 1911.", kind="supported", answers=())
NONE = replace(ASKED, kind="none", answers=())


def made_of(item: Item, count: int = 300) -> list[Example]:
    dice = Random(0)
    return [compose(item, dice) for _ in range(count)]


# The sources


def questions(count: int) -> list[dict[str, object]]:
    return [
        {
            "id": f"q{at}", "question": f"When was ferry {at} built?", "answer": f"19{at:02}", "title": f"Ferry {at}",
            "paragraph": f"Ferry {at} was built in 19{at:02} for the people of Kestrow. It carried {at} passengers.",
        }
        for at in range(count)
    ]  # fmt: skip


def claims(count: int) -> list[dict[str, object]]:
    labels = ("supported", "refuted")
    return [
        {"id": f"c{at}", "set": "fever", "claim": f"Bridge {at} is long.", "label": labels[at % 2],
         "evidence": [f"Bridge {at} over the river Tolne measures {at} metres."]}
        for at in range(count)
    ]  # fmt: skip


def test_items_of_one_passage_are_in_one_part(tmp_path: Path) -> None:
    rows = questions(60)
    rows += [{**row, "id": f"{row['id']}-2", "question": "Who?"} for row in rows]
    write_rows(tmp_path / "train/squad2.jsonl.gz", *rows)
    items = read_items(tmp_path)
    assert len(items) == 120
    for passage in {item.gold[0] for item in items}:
        assert len({item.part for item in items if item.gold[0] == passage}) == 1
    assert {item.part for item in items} == {"train", "tune", "report"}


def test_multi_hop_training_shares_no_gold_passage_with_held_back(tmp_path: Path) -> None:
    shared = {"title": "Shared", "text": "One passage of all.", "is_supporting": True}
    rows = [
        {"id": str(at), "question": "?", "answer": "x",
         "paragraphs": [{"title": "Own", "text": f"Text {at % 40}.", "is_supporting": True}, *[shared] * (at >= 90)]}
        for at in range(120)
    ]  # fmt: skip
    write_rows(tmp_path / "train/hotpot.jsonl.gz", *rows)
    items = read_items(tmp_path)
    held_back = {passage.text for item in items if item.part != "train" for passage in item.gold}
    learned = {passage.text for item in of_part(items, "train") for passage in item.gold}
    assert learned and held_back and not learned & held_back


def test_questions_of_a_world_are_in_one_part(tmp_path: Path) -> None:
    gold = {"title": "Ferry", "text": "It was built in 1911.", "is_supporting": True}
    other = {"title": "Rain", "text": "It falls.", "is_supporting": False}
    kinds = (("bridge", "1911"), ("count", "2"), ("absent", ""))
    rows = [
        {"id": f"w-{world:03}-q{at}", "type": kind, "question": "When?", "answer": answer,
         "paragraphs": [gold, other] if answer else [other]}
        for world in range(40) for at, (kind, answer) in enumerate(kinds)
    ]  # fmt: skip
    write_rows(tmp_path / "complete" / "training.jsonl", *rows)
    items = read_worlds(tmp_path)
    assert [(item.kind, item.answers, len(item.gold)) for item in items[:3]] == [
        ("span", ("1911",), 1), ("span", (), 1), ("none", (), 0),
    ]  # fmt: skip
    assert all(len({item.part for item in items[at : at + 3]}) == 1 for at in range(0, 120, 3))
    assert {item.part for item in items} == {"train", "tune", "report"}
    with pytest.raises(UsageError, match="contains no worlds"):
        read_worlds(tmp_path / "complete")


def test_a_folder_without_training_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="contains no training files"):
        read_items(tmp_path)


# The examples


@pytest.mark.parametrize("made", ["sentence removed", "another passage", "question altered"])
def test_negatives_are_unanswerable_and_without_relevant_passages(made: str) -> None:
    found = negative(ASKED, made, Random(0))
    assert found is not None
    assert (found.answerable, found.answers, found.made) == (0, (), made)
    assert not any(found.relevant)
    if made == "question altered":
        assert found.text != ASKED.text
    else:
        assert not any(occurrences(ASKED.answers, passage.text) for passage in found.passages)


def test_composed_examples_are_labelled_by_what_they_contain() -> None:
    for example in made_of(ASKED):
        has = any(passage == FERRY for passage in example.passages) and example.text == ASKED.text
        assert example.answerable == int(has), example
        assert [bool(relevant) for relevant in example.relevant] == [
            has and passage == FERRY for passage in example.passages
        ]
    assert len({example.made for example in made_of(ASKED)}) == 4
    assert {example.answerable for example in made_of(NONE)} == {0}


def test_multi_hop_examples_are_answerable_with_all_gold_only() -> None:
    for example in made_of(HOPS):
        assert example.passages
        assert example.answerable == int({FERRY, BRASK} <= set(example.passages))
    unclear = [example for example in made_of(replace(HOPS, set="hotpot")) if example.made == "one missing"]
    assert {example.answerable for example in unclear} == {-1}


# Rows and batches


def decode(row: Row, passages: Sequence[Evidence]) -> set[str]:
    texts = set()
    for first, last in row.spans:
        for piece, _, begin, _ in row.window.places():
            if begin <= first < begin + len(piece.ids):
                texts.add(passages[piece.passage].text[piece.starts[first - begin] : piece.ends[last - begin]])
    return texts


def test_labels_are_the_tokens_of_the_answers() -> None:
    example = plain(HOPS)
    row = encode(example, LAYOUT)
    assert decode(row, example.passages) == {"Kestrow"} and len(row.spans) == 2
    assert row.relevant == tuple(int(passage != RAIN) for passage in example.passages)


def test_batches_contain_every_row_once_within_the_limit() -> None:
    rows = [encode(example, LAYOUT) for example in epoch([ASKED, HOPS, CLAIM] * 30, 0)]
    found = batches(rows, tokens=512, seed=0)
    assert sorted(id(row) for batch in found for row in batch) == sorted(map(id, rows))
    assert all(collate(batch).ids.numel() <= 512 for batch in found)


# Training, export and measurement


def small_data(folder: Path) -> Path:
    write_rows(folder / "train/squad2.jsonl.gz", *questions(60))
    write_rows(folder / "train/claims.jsonl.gz", *claims(60))
    return folder


@pytest.mark.nightly
def test_an_interrupted_training_gives_the_same_weights(tmp_path: Path) -> None:
    data, base = small_data(tmp_path / "data"), tiny_encoder(tmp_path / "base")
    plan = Plan(tokens=6000, batch=512, rate=1e-3)
    whole = train(data, tmp_path / "whole", plan, base=base)
    assert whole["finished"] and whole["tokens"] >= 6000 and whole["curve"]
    slices = 0
    part = train(data, tmp_path / "parts", plan, base=base, minutes=0)
    while not part["finished"]:
        part = train(data, tmp_path / "parts", plan, base=base, minutes=0)
        slices += 1
    assert slices > 3
    one, other = (load_file(tmp_path / name / WEIGHTS) for name in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert part["curve"] == whole["curve"]


@pytest.mark.nightly
def test_training_lowers_the_loss_and_another_plan_is_refused(tmp_path: Path) -> None:
    data, base, out = small_data(tmp_path / "data"), tiny_encoder(tmp_path / "base"), tmp_path / "out"
    train(data, out, Plan(tokens=40_000, batch=512, rate=3e-3), base=base)
    kept = torch.load(out / CHECKPOINT, weights_only=True)["progress"]["losses"]
    begin, end = (np.mean([each["span"] + each["relevance"] for each in part]) for part in (kept[:20], kept[-20:]))
    assert end < 0.8 * begin
    with pytest.raises(UsageError, match="of another training"):
        train(data, out, Plan(tokens=50_000), base=base)


@pytest.mark.nightly
def test_exported_network_in_eight_bits_is_close_and_small(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base")
    network = from_pretrained(base).eval()
    for name, eight_bits in (("small", True), ("large", False)):
        convert(network, base / "tokenizer.json", tmp_path / name, eight_bits=eight_bits)
    graphs = [onnx.load(tmp_path / name / "network.onnx").graph for name in ("small", "large")]
    sizes = [sum(len(weight.raw_data) for weight in graph.initializer) for graph in graphs]
    assert sizes[0] < 0.3 * sizes[1]
    small, large = (EvidenceChecker.load(tmp_path / name) for name in ("small", "large"))
    for request in (("Who built it?", [FERRY, BRASK]), ("Where?", [RAIN])):
        expected = EvidenceChecker(LAYOUT, runner(network)).logits(*request)
        assert np.abs(large.logits(*request) - expected).max() < 0.02
        assert np.abs(small.logits(*request) - expected).max() < 0.05


def runner(network: torch.nn.Module) -> Run:
    def run(ids: Ids, mask: Ids, types: Ids) -> tuple[Floats, Floats]:
        with torch.no_grad():
            tokens, whole = network(*map(torch.from_numpy, (ids, mask, types)))
        return tokens.numpy(), whole.numpy()

    return run
