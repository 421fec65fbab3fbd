"""Tuning a tiny graph model: its token is used, a kill loses nothing, and the saved model gives the same replies."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hashing_embedder import HashingEmbedder
from scripted_model import ScriptedModel
from tiny_model import examples, of_town, write_tiny_model

from sleuth.agents.graph_encoder import (
    Encoder,
    Graph,
    ModelWithGraph,
    Shape,
    graph_texts,
    is_graph_model,
    load,
    read_graph,
)
from sleuth.studio.model_server.adapter import resolve_adapter
from sleuth.tools.errors import UsageError
from training.graph_llm import GraphTuning, graph_rows, prompt_ids, tune
from training.graph_llm_compare import Replies
from training.roles.tuning.batches import Plan, prompt_token_ids, tokenize_examples
from training.roles.tuning.tune import CHECKPOINT, learn

pytestmark = pytest.mark.usefixtures("torch_geometric")

EMBEDDER = HashingEmbedder(dimension=32)
PLAN = Plan(rank=4, tokens=3000, batches_per_step=1, warm_up=2, rate=0.02, save_every=2)
LEFT: Graph = [[("Oda", "born in", "Varn")]]
RIGHT: Graph = [[("Oda", "born in", "Isk")]]


@pytest.fixture(scope="module")
def torch_geometric() -> None:
    pytest.importorskip("torch_geometric", reason="the extra graph is not installed")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "examples.jsonl").write_text("\n".join(map(json.dumps, examples(60))))
    return tmp_path / "examples.jsonl"


def encoder() -> Encoder:
    import torch

    torch.manual_seed(3)
    return Encoder(Shape(width=32, hidden=8, heads=2, projector=16))


def tokens(encoder: Encoder, *graphs: Graph) -> Any:
    import torch

    texts = graph_texts(graphs)
    with torch.inference_mode():
        return encoder.tokens(graphs, dict(zip(texts, EMBEDDER.embed_passages(texts), strict=True)))


@pytest.mark.nightly
def test_graphs_side_by_side_have_the_tokens_that_each_has_alone() -> None:
    encode, graph = encoder(), read_graph(of_town("Varn"))
    together = tokens(encode, graph, LEFT, RIGHT)
    assert together.shape == (3, 8)
    for at, each in enumerate((graph, LEFT, RIGHT)):
        assert together[at].tolist() == pytest.approx(tokens(encode, each)[0].tolist(), abs=1e-5)


def test_token_encodes_nodes_edges_and_direction_with_equal_weights() -> None:
    encode = encoder()
    ways: list[Graph] = [LEFT, RIGHT, [[("Oda", "died in", "Varn")]], [[("Varn", "born in", "Oda")]]]
    found = tokens(encode, *ways)
    assert min((found[a] - found[b]).abs().max() for a in range(4) for b in range(a)) > 0.01
    twice, many = tokens(encode, [*LEFT, *RIGHT], [*RIGHT, *LEFT])
    assert twice.tolist() == pytest.approx(many.tolist(), abs=1e-5)
    said_again = tokens(encode, [[*LEFT[0], *LEFT[0]]])
    assert said_again.tolist() == [pytest.approx(found[0].tolist(), abs=1e-5)]


def test_token_precedes_the_first_user_message(base: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(base)
    sent = of_town("Varn")
    before, after = prompt_ids(sent, tokenizer)
    assert tokenizer.decode(before).endswith("<|im_start|>user\n")
    assert tokenizer.decode(after).startswith("\nAlready known:")
    assert [*before, *after[1:]] == prompt_token_ids(sent, tokenizer)
    answering, _, beginning = graph_rows(examples(3), tokenizer)
    assert (answering.at, answering.ids[answering.at]) == (len(before), 0)
    assert (beginning.at, beginning.graph) == (-1, ())
    plain, *_ = tokenize_examples(examples(3), tokenizer)
    assert (answering.answer, answering.verdict) == (plain.answer, plain.verdict)
    assert plain.answer


@pytest.mark.nightly
def test_interrupted_training_resumes_to_the_same_result(base: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    rows = graph_rows(examples(24), AutoTokenizer.from_pretrained(base))
    graphs = [row.graph for row in rows]
    steps = PLAN.steps(rows)
    begun, resumed, whole = (GraphTuning(base, PLAN, EMBEDDER, graphs) for _ in range(3))
    for at in range(2):
        begun.step(steps[at], PLAN.rate_at(at, len(steps)))
    half = learn(begun, steps[:0], tmp_path / "none.pt", "k")
    half.step = 2
    begun.save(tmp_path / "checkpoint.pt", half)
    learn(resumed, steps, tmp_path / "checkpoint.pt", "k")
    learn(whole, steps, tmp_path / "other.pt", "k")
    for mine, theirs in zip(resumed.learned, whole.learned, strict=True):
        assert mine.equal(theirs)


@pytest.mark.faults  # trains for some minutes
def test_trained_folder_is_served_with_the_same_replies(base: Path, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "graph"
    report = tune(file, base, out, replace(PLAN, rank=16, epochs=6), embedder=EMBEDDER)
    assert report["loss"][-1] < report["loss"][0] / 2
    assert not (out / CHECKPOINT).exists()
    assert is_graph_model(out)
    assert resolve_adapter(str(out)) == str(out)
    kept, embedder = load(out)
    assert (embedder, kept.shape.hidden) == ("hashing", 32)
    replies = Replies(base, out, EMBEDDER, exact=True)
    assert replies.say(of_town("Varn"), tokens=12) != replies.say(of_town("Varn"), tokens=12, encode=False)


def test_unusable_input_is_reported_on_one_line(base: Path, file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"None of the examples in .* is of these prompts: reader/read"):
        tune(file, base, tmp_path / "out", PLAN, embedder=EMBEDDER, prompts=["reader/read"])
    with pytest.raises(UsageError, match="None of the examples shows triples"):
        tune(file, base, tmp_path / "out", PLAN, embedder=EMBEDDER, prompts=["planner/begin"])
    tune(file, base, tmp_path / "graph", PLAN, embedder=EMBEDDER, limit=4)
    model, folder = ScriptedModel(), str(tmp_path / "graph")
    assert ModelWithGraph(model, folder, EMBEDDER).token(LEFT)
    with pytest.raises(UsageError, match="was trained with the embedder hashing, and SLEUTH_EMBEDDER is other"):
        ModelWithGraph(model, folder, HashingEmbedder("other", 32)).token(LEFT)
    with pytest.raises(UsageError, match="vectors of 16 numbers, and the graph model was trained with vectors of 32"):
        ModelWithGraph(model, folder, HashingEmbedder(dimension=16)).token(LEFT)
    load.cache_clear()
    (tmp_path / "graph" / "graph.safetensors").write_bytes(b"\x00" * 40)
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "graph")
