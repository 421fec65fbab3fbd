"""Compares RAS's graph model with a model that was tuned on the same examples without the graph's token.

python -m training.graph_llm_compare EXAMPLES GRAPH TEXT --base MODEL --out REPLIES

Both reply greedily, without a server, to prompts with triples whose questions neither has learned. Replies are stored
as they are made: if interrupted, rerun the same command to continue.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sleuth.agents.graph_encoder import graph_texts, is_graph_model, load, read_graph
from sleuth.agents.model import Message
from sleuth.agents.model_calls.output_parsing import Unparsable, parse
from sleuth.agents.role import Role
from sleuth.agents.roles.planning import NEXT, NEXT_WITH_FINDING, Next
from sleuth.agents.roles.reading import ANSWER_FROM_FACTS, FromFacts
from sleuth.studio.cli.app import run_cli
from sleuth.studio.evaluation.run_folder import read_lines
from sleuth.studio.evaluation.scoring import Difference, Interval, difference, exact_match, f1, interval, paired
from sleuth.studio.model_server.adapter import merge
from sleuth.tools.errors import UsageError
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.search.vectors.embedder import make_embedder
from sleuth.tools.settings import Settings
from training.graph_llm import prompt_ids
from training.roles.tuning.batches import prompt_token_ids, read_examples

if TYPE_CHECKING:
    import torch

ROLES: dict[str, Role[Any, Any]] = {role.prompt: role for role in (NEXT, NEXT_WITH_FINDING, ANSWER_FROM_FACTS)}
"""The roles whose prompts show triples; to the others both models are the same but for their training."""
MODELS = ("graph", "text")
METRICS = ("answer_f1", "answer_em", "plan", "valid")
MAX_TOKENS = 160
"""The longest reply: with a finding, a sub-query and numbers of facts, most have fewer than 100 tokens."""

Lines = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Scores by model, question and metric."""


class Replies:
    """A base model with the adapter of a folder, and its encoder where it is a graph model.

    `exact` computes in float32 with the weights that a server would use, in bfloat16.
    """

    def __init__(self, base: Path, folder: Path, embedder: Embedder, *, exact: bool = False) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(base, local_files_only=True)
        kind: Any = AutoModelForCausalLM
        self.model: Any = kind.from_pretrained(base, local_files_only=True, dtype=torch.bfloat16)
        merge(self.model.state_dict(), folder)
        self.model = self.model.to("cuda" if torch.cuda.is_available() else "cpu", torch.float32 if exact else None)
        self.encoder = load(folder)[0] if is_graph_model(folder) else None
        self.embedder = embedder

    def say(self, messages: Sequence[Message], *, tokens: int, encode: bool = True) -> str:
        """Return the reply, at most `tokens` long; without `encode` the graph is omitted (ablation)."""
        import torch

        with torch.inference_mode():
            shown = self._shown(messages, encode=encode)
            ids = self.model.generate(
                inputs_embeds=shown,
                attention_mask=torch.ones(shown.shape[:2], dtype=torch.long, device=shown.device),
                max_new_tokens=tokens,
                do_sample=False,
                pad_token_id=self.tokenizer.eos_token_id,
            )[0]
        text: str = self.tokenizer.decode(ids, skip_special_tokens=True)
        return text

    def _shown(self, messages: Sequence[Message], *, encode: bool) -> "torch.Tensor":
        """Return the prompt as vectors, of shape (1, tokens, hidden)."""
        import torch

        def vectors(ids: Sequence[int]) -> "torch.Tensor":
            found: torch.Tensor = self.model.get_input_embeddings()(torch.tensor([ids], device=self.model.device))
            return found

        graph = read_graph(messages)
        if not (encode and graph and self.encoder):
            return vectors(prompt_token_ids(messages, self.tokenizer))
        before, after = prompt_ids(messages, self.tokenizer)
        texts = graph_texts([graph])
        rows = dict(zip(texts, self.embedder.embed_passages(texts), strict=True))
        token = self.encoder.tokens([graph], rows).to(self.model.device, self.model.dtype)
        return torch.cat([vectors(before), token[None], vectors(after)], dim=1)


def unseen(examples: Path, learned: Path, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the examples with triples whose questions are not among those learned, each prompt once.

    Args:
        examples: `examples.jsonl` or `all.jsonl`, as roles.data.examples has made them.
        learned: the file that the models were tuned on; those of its questions that were held out are unseen.
        limit: the most questions, chosen at random by their hashes.

    Raises:
        UsageError: a file cannot be read, or all of its questions were learned.
    """
    seen = {row["question"] for row in read_examples(learned)[0]}
    rows = [row for half in read_examples(examples, list(ROLES)) for row in half if row["question"] not in seen]
    if not rows:
        raise UsageError(f"All questions of {examples} were learned: compare with others, such as those of all.jsonl.")
    rows.sort(key=lambda row: sha256(row["question"].encode()).digest())
    kept = list(dict.fromkeys(row["question"] for row in rows))[:limit]
    once = {_key(row): row for row in rows if row["question"] in kept}
    return list(once.values())


def _key(row: Mapping[str, Any]) -> str:
    return sha256(json.dumps([row["prompt"], row["messages"]]).encode()).hexdigest()


def reply(rows: Sequence[Mapping[str, Any]], folders: Sequence[Path], base: Path, out: Path, embedder: Embedder) -> int:
    """Append the replies that are missing in `out`, of one model after the other; return their number."""
    done = {(line["model"], line["example"]) for line in read_lines(out)}
    missing = [(name, row) for name in MODELS for row in rows if (name, _key(row)) not in done]
    model: Replies | None = None
    shown = ""
    with out.open("a", encoding="utf-8") as file, typer.progressbar(missing, label="Asking", file=sys.stderr) as bar:
        for name, row in bar:
            if model is None or name != shown:
                model, shown = Replies(base, folders[MODELS.index(name)], embedder), name
            said = model.say(row["messages"], tokens=MAX_TOKENS)
            file.write(json.dumps({"model": name, "example": _key(row), "reply": said}, ensure_ascii=False) + "\n")
            file.flush()
    return len(missing)


def reply_scores(row: Mapping[str, Any], said: str) -> dict[str, float]:
    """Return the scores of a reply to an example: F1 and exact match of its answer, or whether its plan is right.

    A reply that cannot be parsed is not valid, and wrong. Which sub-query follows `[SUBQ]` is not scored.
    """
    role = ROLES[row["prompt"]]
    wanted = parse(row["reply"], role.output)
    try:
        found = parse(said, role.output)
    except Unparsable:
        found = None
    if isinstance(wanted, Next):
        right = isinstance(found, Next) and found.plan == wanted.plan
        return {"plan": float(right), "valid": float(found is not None)}
    if not isinstance(found, FromFacts):
        return {"answer_f1": 0.0, "answer_em": 0.0, "valid": 0.0}
    return {
        "valid": 1.0,
        "answer_f1": f1(found.answer, [wanted.answer]),
        "answer_em": exact_match(found.answer, [wanted.answer]),
    }


def by_question(rows: Iterable[Mapping[str, Any]], replies: Iterable[Mapping[str, str]]) -> Lines:
    """Return every model's scores; a question with several prompts has their mean, since they are not independent."""
    examples = {_key(row): row for row in rows}
    found: dict[str, dict[str, dict[str, list[float]]]] = {
        name: defaultdict(lambda: defaultdict(list)) for name in MODELS
    }
    for line in replies:
        if row := examples.get(line["example"]):
            for metric, score in reply_scores(row, line["reply"]).items():
                found[line["model"]][row["question"]][metric].append(score)
    return {
        name: {question: {metric: mean(values) for metric, values in own.items()} for question, own in asked.items()}
        for name, asked in found.items()
    }


def compare(scores: Lines, *, seed: int = 0) -> dict[str, dict[str, Interval | Difference]]:
    """Return, by metric, each model's mean and the paired difference, with 95 % bootstrap intervals over questions."""
    graph, text = MODELS
    table: dict[str, dict[str, Interval | Difference]] = {}
    for metric in METRICS:
        pairs = paired(scores[graph], scores[text], metric)
        table[metric] = {
            graph: interval([first for first, _ in pairs], seed=seed),
            text: interval([second for _, second in pairs], seed=seed),
            "difference": difference(graph, text, metric, pairs, seed=seed),
        }
    return table


def main(
    examples: Annotated[Path, typer.Argument(help="`examples.jsonl` or `all.jsonl` of roles.data.examples.")],
    graph: Annotated[Path, typer.Argument(help="Folder of the graph model.")],
    text: Annotated[Path, typer.Argument(help="Folder of the model tuned with `--no-encode`.")],
    *,
    base: Annotated[Path, typer.Option(help="Folder of the model that both were tuned from.")],
    out: Annotated[Path, typer.Option(help="File for the replies, which is continued.")],
    learned: Annotated[
        Path | None, typer.Option(help="Examples that both were tuned on; default: the examples given.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Questions to compare with; default: all.")] = None,
) -> None:
    """Compare a graph model with one that sees no graph, and print the scores as JSON."""
    import torch

    torch.set_num_threads(1)  # threads over single rows mostly wait for each other, on busy cores for minutes
    if is_graph_model(text) or not is_graph_model(graph):
        raise UsageError(f"Name the graph model first, then the one tuned with --no-encode: {graph} {text}.")
    rows = unseen(examples, learned or examples, limit)
    reply(rows, (graph, text), base, out, make_embedder(Settings()))
    counts = {prompt: sum(row["prompt"] == prompt for row in rows) for prompt in ROLES}
    typer.echo(json.dumps({"examples": counts, **compare(by_question(rows, read_lines(out)))}, indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
