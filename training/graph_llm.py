"""Tunes RAS's graph model: `python -m training.graph_llm EXAMPLES --base MODEL --out FOLDER`.

One language model learns planning and answering together, mixed at random, and with it the encoder that shows it the
triples of a prompt as a token (Jiang et al., section 3.4). Everything else, checkpoints too, is as in roles.tune.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sleuth.agents.graph_encoder import (
    METADATA,
    WEIGHTS,
    Encoder,
    Graph,
    Shape,
    first_user_message,
    graph_texts,
    read_graph,
)
from sleuth.agents.model import Message
from sleuth.agents.roles.planning import BEGIN, NEXT, NEXT_WITH_FINDING
from sleuth.agents.roles.reading import ANSWER_FROM_FACTS, ANSWER_UNAIDED
from sleuth.studio.cli.app import run_cli
from sleuth.tools.errors import UsageError
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.search.vectors.embedder import make_embedder
from sleuth.tools.settings import Profile, Settings
from training.roles.tuning.batches import (
    USUAL,
    Plan,
    Row,
    apply_template,
    prompt_token_ids,
    read_examples,
    tokenize_examples,
    tokenize_reply,
)
from training.roles.tuning.tune import Tuning, run_tuning

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase


PAPER = replace(USUAL, rate=1e-5, epochs=2, warm_up=0.15, answer=0.0, verdict=0.0)
"""The hyperparameters of the paper, of which it names these (appendix D.2): no token weighs more than another."""
PLANNING = (BEGIN.prompt, NEXT.prompt, NEXT_WITH_FINDING.prompt)
ANSWERING = (ANSWER_FROM_FACTS.prompt, ANSWER_UNAIDED.prompt)
TASKS = {"both": (*PLANNING, *ANSWERING), "planning": PLANNING, "answering": ANSWERING, "all": ()}
"""The prompts of each task; without any, all prompts are learned."""
PLACEHOLDER = "<prompt_embeds>"
"""Where vLLM puts an embedding into a chat; no text that is sent has it in it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphRow(Row):
    """An example with its graph, and the position of the graph's token; empty and -1 without triples."""

    graph: Graph = ()
    at: int = -1


def with_token(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with the placeholder for the graph's token on a line of its own."""
    first = first_user_message(messages)
    shown = Message(role="user", content=f"{PLACEHOLDER}\n{first['content']}")
    return [shown if message is first else message for message in messages]


def graph_rows(examples: Sequence[Mapping[str, Any]], tokenizer: "PreTrainedTokenizerBase") -> list[GraphRow]:
    """Return examples as tokens, with 0 at the place of the graph's."""
    rows = []
    for example in examples:
        messages, graph = example["messages"], read_graph(example["messages"])
        reply, answer, verdict = tokenize_reply(example["reply"], tokenizer)
        before, after = prompt_ids(messages, tokenizer) if graph else (prompt_token_ids(messages, tokenizer), [])
        row = GraphRow(
            prompt=example["prompt"],
            ids=[*before, *([0] if graph else []), *after, *reply],
            learned=len(reply),
            answer=answer,
            verdict=verdict,
            graph=graph or (),
            at=len(before) if graph else -1,
        )
        rows.append(row)
    return rows


def prompt_ids(messages: Sequence[Message], tokenizer: "PreTrainedTokenizerBase") -> tuple[list[int], list[int]]:
    """Return the tokens of a prompt before its graph's and after it."""
    asked = apply_template(with_token(messages), tokenizer)
    before, after = (tokenizer(part, add_special_tokens=False)["input_ids"] for part in asked.split(PLACEHOLDER))
    return before, after


class GraphTuning(Tuning):
    """A tuning that also learns the encoder, whose tokens the model is shown."""

    def __init__(
        self, base: Path, plan: Plan, embedder: Embedder, graphs: Sequence[Graph], *, adapt: bool = True
    ) -> None:
        """Embed all texts of the graphs; without `adapt` the language model stays as it is (ablation).

        Raises:
            MissingExtra: the library for graphs is not installed.
            UsageError: the examples have no triples.
        """
        super().__init__(base, plan)
        texts = graph_texts(graphs)
        if not texts:
            raise UsageError(
                "None of the examples shows triples: make them with roles.data.examples, with the method ras."
            )
        rows = embedder.embed_passages(texts)
        self.embedder = embedder.name
        self.vectors = dict(zip(texts, rows, strict=True))
        table = self.model.get_input_embeddings().weight
        shape = Shape(width=rows.shape[1], hidden=table.shape[1])
        self.encoder = Encoder(shape, scale=float(table.float().std()))
        weights = self.encoder.module.to(self.device).parameters()
        self.optimizer.add_param_group({"params": list(weights), "weight_decay": 0.0})
        if not adapt:
            for each in self.learned:
                each.requires_grad = False  # its weights have no effect at first, and keep none
        self.learned += self.encoder.module.parameters()

    def logits(self, batch: Sequence[Row]) -> "tuple[torch.Tensor, torch.Tensor]":
        """Return the same logits, after replacing the placeholders' embeddings by the graphs' tokens."""
        embeddings = self.model.get_input_embeddings()
        hook = embeddings.register_forward_hook(lambda _module, _ids, shown: self._with_tokens(batch, shown))
        try:
            return super().logits(batch)
        finally:
            hook.remove()

    def _with_tokens(self, batch: Sequence[Row], shown: "torch.Tensor") -> "torch.Tensor":
        """Return the vectors of a batch, of shape (rows, tokens, hidden), with those of its graphs at their places."""
        import torch

        rows = [(at, row) for at, row in enumerate(batch) if isinstance(row, GraphRow) and row.graph]
        if not rows:
            return shown
        tokens = self.encoder.tokens([row.graph for _, row in rows], self.vectors).to(shown.dtype)
        places = [
            torch.tensor(each, device=self.device) for each in ([at for at, _ in rows], [row.at for _, row in rows])
        ]
        return shown.index_put((places[0], places[1]), tokens)

    def state(self) -> dict[str, Any]:
        """Return the encoder's weights too."""
        return {**super().state(), "encoder": self.encoder.module.state_dict()}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Take over a `state`."""
        self.encoder.module.load_state_dict(kept["encoder"])
        super().restore(kept)

    def finish(self, folder: Path) -> None:
        """Write the adapter and the encoder."""
        from safetensors.torch import save_file

        super().finish(folder)
        module = self.encoder.module
        weights = {name: each.detach().cpu().contiguous() for name, each in module.state_dict().items()}
        save_file(weights, folder / WEIGHTS)
        metadata = {"embedder": self.embedder, "shape": asdict(self.encoder.shape)}
        (folder / METADATA).write_text(json.dumps(metadata, indent=1) + "\n", encoding="utf-8")


def tune(
    examples: Path,
    base: Path,
    out: Path,
    plan: Plan,
    *,
    embedder: Embedder,
    prompts: Sequence[str] = (*PLANNING, *ANSWERING),
    limit: int | None = None,
    encode: bool = True,
    adapt: bool = True,
) -> dict[str, Any]:
    """Write the graph model and a report; returns the report: how held-out replies were met before and after.

    Args:
        examples: as roles.data.examples has made them.
        base: the folder of the model to tune.
        out: the graph model's folder; a checkpoint is kept in it until the end.
        plan: how it is tuned.
        embedder: gives nodes and edges their vectors; the same has to be used with the graph model.
        prompts: those that are learned; of none, all.
        limit: examples to learn from, and held out ones to check with.
        encode: without it only the adapter is learned, and nothing is put in front of the text (ablation, Table 2).
        adapt: without it only the encoder is learned, and the language model stays as it is (ablation, Table 2).

    Raises:
        UsageError: the examples cannot be read, or none is of these prompts or has triples.
        MissingExtra: the library for graphs is not installed.
    """
    from transformers import AutoTokenizer

    learned, held_out = (rows[:limit] for rows in read_examples(examples, prompts))
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    if not encode:
        return run_tuning(
            Tuning(base, plan), tokenize_examples(learned, tokenizer), tokenize_examples(held_out, tokenizer), out
        )
    rows, checked = graph_rows(learned, tokenizer), graph_rows(held_out, tokenizer)
    tuning = GraphTuning(base, plan, embedder, [row.graph for row in (*rows, *checked)], adapt=adapt)
    return run_tuning(tuning, rows, checked, out, "graph", embedder.name, *([] if adapt else ["encoder alone"]))


def main(
    examples: Annotated[
        Path, typer.Argument(help="`examples.jsonl` or `all.jsonl`, as roles.data.examples has made them.")
    ],
    *,
    base: Annotated[Path, typer.Option(help="Folder of the model to tune: `SLEUTH_HOME/models/...`.")],
    out: Annotated[Path, typer.Option(help="The graph model's folder; a checkpoint is kept in it until the end.")],
    task: Annotated[
        Literal["both", "planning", "answering", "all"],
        typer.Option(help="Tasks to learn; one alone is an ablation, `all` are the other methods' too."),
    ] = "both",
    encode: Annotated[bool, typer.Option("--encode/--no-encode", help="Off: no graph token (ablation).")] = True,
    adapt: Annotated[bool, typer.Option("--adapt/--no-adapt", help="Off: the encoder alone learns (ablation).")] = True,
    profile: Annotated[Profile, typer.Option(help="`paper`: hyperparameters of the paper.")] = "default",
    limit: Annotated[int | None, typer.Option(help="Examples to learn from; default: all.")] = None,
    rank: Annotated[int, typer.Option(help="Rank of the adapter.")] = USUAL.rank,
    rate: Annotated[float | None, typer.Option(help="Largest learning rate; default: of the profile.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Times over all examples; default: of the profile.")] = None,
    seed: Annotated[int, typer.Option(help="For the order of examples, and the first weights.")] = USUAL.seed,
) -> None:
    """Tune a graph model on examples, and print what came of it as JSON."""
    usual = PAPER if profile == "paper" else USUAL
    plan = replace(usual, rank=rank, rate=rate or usual.rate, epochs=epochs or usual.epochs, seed=seed)
    report = tune(
        examples,
        base,
        out,
        plan,
        embedder=make_embedder(Settings()),
        prompts=TASKS[task],
        limit=limit,
        encode=encode,
        adapt=adapt,
    )
    typer.echo(json.dumps(report, indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
