import re
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
import torch
from checker import TOKENIZER, tiny_encoder
from json_lines import write_rows
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker import Evidence, EvidenceChecker
from sleuth.tools.evidence_checker.inputs import Layout
from sleuth.tools.evidence_checker.large_model import build_large_checker
from sleuth.tools.settings import Settings
from training.evidence_checker.batches import PIECE, Row, batches, collate, encode, load_rows, save_rows
from training.evidence_checker.examples import (
    Example,
    compose,
    epoch,
    negative,
    occurrences,
    opposite,
    plain,
)
from training.evidence_checker.export import convert, package_adapter
from training.evidence_checker.model import from_pretrained, merge, restore, runner, trained
from training.evidence_checker.sources import Item, of_part, read_comparisons, read_items, read_worlds
from training.evidence_checker.train import CHECKPOINT, Plan, train, trained_network

LAYOUT = Layout(TOKENIZER, piece=PIECE)
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


def test_comparisons_are_of_pages_outside_the_evaluation(tmp_path: Path) -> None:
    titles = [f"Person {at}" for at in range(9)]
    pages = [
        {"title": each, "text": f"{each} (born 19{at}0) sails.", "is_supporting": at == 0}
        for at, each in enumerate(titles)
    ]
    write_rows(tmp_path / "train/2wiki.jsonl.gz", {"id": "1", "question": "?", "answer": "x", "paragraphs": pages})
    write_rows(tmp_path / "2wiki/corpus.jsonl.gz", {"id": "1", **pages[0]})
    items = [*read_comparisons(tmp_path)]
    assert {page.title for item in items for page in item.gold} == set(titles[1:])
    assert {item.part for item in items} == {"train"}


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


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who died later, Oda Brask or Ib Tolne?", "Who died earlier, Oda Brask or Ib Tolne?"),
        ("Which ship is older, Ib Tolne or Oda Brask ?", "Which ship is younger, Ib Tolne or Oda Brask ?"),
        ("Who built it first, Ib Tolne or Per Lund?", None),
        ("Who sailed first?", None),
    ],
)
def test_the_opposite_of_a_comparison_has_the_other_answer(question: str, expected: str | None) -> None:
    found = opposite(replace(HOPS, text=question, answers=("Oda Brask", "Brask")))
    assert (found and (found.text, found.answers)) == (expected and (expected, ("Ib Tolne",)))


# Rows and batches


def texts(row: Row, first: str, last: str) -> set[str]:
    """Return the words from each mark of a beginning to the next one of an end."""
    pairs = zip(np.flatnonzero(row.tokens[first]), np.flatnonzero(row.tokens[last]), strict=True)
    return {Tokenizer.from_file(str(TOKENIZER)).decode(row.tokens["ids"][begin : end + 1]) for begin, end in pairs}


def test_labels_are_the_tokens_of_the_answers() -> None:
    example = plain(HOPS)
    row = encode(example, LAYOUT)
    assert texts(row, "starts", "ends") == {"kestrow"} and row.tokens["starts"].sum() == 2
    assert row.relevant.tolist() == [int(passage != RAIN) for passage in example.passages]


def test_supporting_sentences_are_labels_where_they_are_known() -> None:
    row = encode(plain(replace(HOPS, facts=("Oda Brask was born in Kestrow.",))), LAYOUT)
    support = Tokenizer.from_file(str(TOKENIZER)).decode(row.tokens["ids"][row.tokens["support"] == 1])
    assert support == "oda brask was born in kestrow."
    assert ((row.tokens["support"] == -1) == ~row.tokens["text"]).all()
    assert (encode(plain(HOPS), LAYOUT).tokens["support"] == -1).all()


def test_only_the_part_of_a_long_passage_with_the_answer_is_relevant() -> None:
    long = Evidence(title="Ferry", text=f"{'The river is long and wide. ' * 40}{FERRY.text}")
    for facts, other in (((), -1), (("It sank off Kestrow in 1934.",), 0)):
        row = encode(plain(replace(ASKED, gold=(long,), facts=facts)), LAYOUT)
        assert set(row.relevant.tolist()) == {other, 1} and (row.relevant == 1).sum() == 1


def test_rows_are_the_same_after_they_are_stored(tmp_path: Path) -> None:
    rows = [encode(example, LAYOUT) for example in epoch([ASKED, HOPS, CLAIM], 0)]
    save_rows(rows, tmp_path / "rows.npz")
    for one, other in zip(rows, load_rows(tmp_path / "rows.npz"), strict=True):
        assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("tokens", "relevant", "whole"))


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
    assert whole["finished"] and whole["tokens"] >= 6000
    slices = 0
    part = train(data, tmp_path / "parts", plan, base=base, minutes=0)
    while not part["finished"]:
        part = train(data, tmp_path / "parts", plan, base=base, minutes=0)
        slices += 1
    assert slices > 3
    one, other = (torch.load(tmp_path / name / CHECKPOINT, weights_only=True) for name in ("whole", "parts"))
    assert all(torch.equal(one["network"][name], other["network"][name]) for name in one["network"])
    assert one["progress"]["losses"] == other["progress"]["losses"]


@pytest.mark.nightly
def test_training_lowers_the_loss_and_another_plan_is_refused(tmp_path: Path) -> None:
    data, base, out = small_data(tmp_path / "data"), tiny_encoder(tmp_path / "base"), tmp_path / "out"
    train(data, out, Plan(tokens=40_000, batch=512, rate=3e-3), base=base)
    kept = torch.load(out / CHECKPOINT, weights_only=True)["progress"]["losses"]
    begin, end = (np.mean([each["span"] + each["relevance"] for each in part]) for part in (kept[:20], kept[-20:]))
    assert end < 0.8 * begin
    with pytest.raises(UsageError, match="of another training"):
        train(data, out, Plan(tokens=50_000), base=base)


def test_resuming_reads_the_stored_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, base = small_data(tmp_path / "data"), tiny_encoder(tmp_path / "base")
    first = train(data, tmp_path / "out", Plan(tokens=6000, batch=512), base=base, minutes=0)
    monkeypatch.setattr("training.evidence_checker.train.with_neighbors", None)
    assert train(data, tmp_path / "out", Plan(tokens=9000, batch=512), base=base, minutes=0)["tokens"] > first["tokens"]


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_adapters_are_trained_alone_and_merged_for_export(tmp_path: Path, family: str) -> None:
    data, base, out = small_data(tmp_path / "data"), tiny_encoder(tmp_path / "base", family), tmp_path / "out"
    train(data, out, Plan(tokens=1500, batch=512, rate=1e-2, rank=4), base=base)
    weights = torch.load(out / CHECKPOINT, weights_only=True)["network"]
    assert all(re.search(r"lora_[AB]|^(tokens|whole)\.", name) for name in weights) and len(weights) == 2 * 12 + 4
    network = trained_network(out, base)
    request = ("Who built it?", [FERRY, BRASK])
    expected = EvidenceChecker(LAYOUT, runner(network)).logits(*request)
    assert (
        np.abs(expected - EvidenceChecker(LAYOUT, runner(from_pretrained(base, rank=4))).logits(*request)).max() > 0.1
    )
    convert(merge(network), base / "tokenizer.json", tmp_path / "checker", eight_bits=False)
    assert np.abs(EvidenceChecker.load(tmp_path / "checker").logits(*request) - expected).max() < 0.05
    with pytest.raises(UsageError, match="of another network"):
        restore(from_pretrained(base), weights)


def test_packaged_adapter_and_its_base_are_the_trained_checker(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base", "mpnet")
    torch.manual_seed(1)
    equal = load_file(base / "model.safetensors")  # the exporter would join them
    noisy = {name: value + 0.02 * torch.randn(value.shape) for name, value in equal.items()}
    save_file(noisy, base / "model.safetensors")
    network = from_pretrained(base, rank=4)
    restore(network, {name: 0.2 * torch.randn_like(weight) for name, weight in trained(network).items()})
    request = ("Who built it?", [FERRY, BRASK])
    expected = EvidenceChecker(LAYOUT, runner(network)).logits(*request)
    package_adapter(network, base / "tokenizer.json", packaged := tmp_path / "large")
    graph = onnx.load(packaged / "network.onnx", load_external_data=False).graph
    assert not any(weight.raw_data for weight in graph.initializer if weight.name.startswith("encoder."))
    build_large_checker(base / "model.safetensors", tmp_path / "models" / "reader", packaged)
    built = EvidenceChecker.load(tmp_path / "models" / "reader")
    assert np.abs(built.logits(*request) - expected).max() < 0.1 * np.abs(expected).max()
    assert built.name == "large"
    assert EvidenceChecker.of_settings(Settings(home=tmp_path)) is built
    assert EvidenceChecker.of_settings(Settings(home=tmp_path / "other")).name == "small"


def test_the_rate_rises_stays_and_falls() -> None:
    plan = Plan(tokens=100, rate=1.0, warm_up=0.1, decay=0.2)
    assert [plan.rate_at(tokens) for tokens in (5, 10, 50, 80, 90, 100)] == pytest.approx([0.5, 1, 1, 1, 0.5, 0])


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
