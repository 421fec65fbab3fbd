"""Mix examples by prompt: `python -m training.roles.data.mix ALL --out EXAMPLES`.

Training time depends on tokens, so the shares are shares of tokens. Within a prompt the answers are balanced: as many
yes as no, some unanswerable, and few one-hop questions, which do not teach planning.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from statistics import mean
from typing import Annotated, Any

import typer

from sleuth.studio.cli.app import run_cli
from sleuth.studio.evaluation.run_folder import write_lines
from training.questions import lines
from training.roles.data.teacher import Example

LONGEST = 5_000
"""Characters of a prompt; longer ones cost more than they teach."""
LONG = {"planner/next": 8_000, "planner/next_with_finding": 8_000, "answerer/from_facts": 8_000}
"""The same of prompts that would lose their later rounds."""
PER_TOKEN = 3.9
"""Characters of a token, about."""
UNTOLD = {"reader": 0.3, "reviewer": 0.35}
"""Maximum share of unanswerable examples by role, otherwise SELDOM: these two roles must recognize them."""
SELDOM = 0.2
TOLD = {"reviewer": 1 - UNTOLD["reviewer"]}
"""Maximum share of answerable examples: mostly right drafts would teach a review that always passes."""
SHARES = {
    "reader/read": 35,
    "drafter/draft": 18,
    "planner/plan": 10,
    "reviewer/review": 14,
    "planner/next_with_finding": 5,
    "answerer/answer": 3.5,
    "verifier/verify": 3,
    "reasoner/reason": 3,
    "answerer/from_facts": 3,
    "extractor/extract": 2,
    "aggregator/aggregate": 2,
    "detective/infer": 2,
    "evaluator/evidence": 2,
    "refiner/refine": 2,
    "reasoner/monitor": 1,
    "evaluator/attribution": 1,
    "detective/requery": 1,
    "evaluator/support": 1,
    "expander/expand": 1,
    "evaluator/relevance": 0.7,
    "evaluator/consistency": 0.7,
    "evaluator/declarative": 0.4,
    "integrator/step": 0.6,
    "integrator/last_step": 0.6,
    "integrator/integrate": 0.3,
    "detective/entities": 0.2,
    "fuser/fuse": 0.2,
    "planner/next": 2,
    "planner/begin": 0.1,
    "answerer/unaided": 0.1,
}
"""Weights of the prompts in tokens. The reader's is the largest, in examples too: others have to beat plain RAG."""
MOST = {"planner/begin": 60, "answerer/unaided": 60, "detective/entities": 150}
"""Maximum number of examples of a prompt that is learned quickly."""
ONE_HOP = {"planner": 0.08, "expander": 0.08, "refiner": 0.15, "detective": 0.15}
"""The share of questions of one hop in what a role learns; otherwise OFTEN."""
OFTEN = 0.35
BUDGET = 2_400_000
"""Tokens of an epoch: a hundred minutes at 400 tokens a second."""


def tokens(example: Example) -> float:
    """Return the approximate number of tokens of an example."""
    return (sum(len(each["content"]) for each in example.messages) + len(example.reply)) / PER_TOKEN


def mix_examples(found: Iterable[Example], *, budget: float, seed: int) -> list[Example]:
    """Return examples within the token budget, shuffled, without duplicates or overlong ones.

    The unused budget of a rare prompt goes to the others.
    """
    dice = Random(seed)  # noqa: S311 - repeatable by design
    pools: dict[str, dict[str, Example]] = defaultdict(dict)
    for example in found:
        messages = json.dumps(example.messages)
        if example.prompt in SHARES and len(messages) <= LONG.get(example.prompt, LONGEST):
            pools[example.prompt].setdefault(messages, example)
    orders = {prompt: balance(list(pool.values()), dice) for prompt, pool in sorted(pools.items())}
    kept: list[Example] = []
    while orders and budget > 0:
        unit = budget / sum(SHARES[prompt] for prompt in orders)
        short = [prompt for prompt, order in orders.items() if sum(map(tokens, order)) <= unit * SHARES[prompt]]
        for prompt in short or list(orders):
            taken = _until(orders.pop(prompt), unit * SHARES[prompt])
            budget -= sum(map(tokens, taken))
            kept += taken
    dice.shuffle(kept)
    return kept


def _until(order: Sequence[Example], budget: float) -> list[Example]:
    taken = []
    for example in order:
        budget -= tokens(example)
        if budget < 0:
            break
        taken.append(example)
    return taken


def balance(pool: Sequence[Example], dice: Random) -> list[Example]:
    """Return a prompt's examples in an order whose every prefix is balanced; examples that would unbalance it are
    dropped.
    """
    left, order = dice.sample(pool, len(pool)), list[Example]()
    seen: Counter[str] = Counter()
    while left:
        later = []
        for example in left:
            traits = {trait: limit for trait, limit in _limits(example).items() if limit < 1}
            if all(seen[trait] + 1 <= limit * (len(order) + 1) + 1 for trait, limit in traits.items()):
                order.append(example)
                seen.update(traits.keys())
            else:
                later.append(example)
        if len(later) == len(left):
            break
        left = later
    return order[: MOST.get(order[0].prompt)] if order else []


def _limits(example: Example) -> dict[str, float]:
    """Return the traits of an example, with the share of its prompt's examples that may have each of them."""
    if example.reply in ("Yes", "No"):
        return {example.reply: 0.5}
    return {
        "one hop": ONE_HOP.get(example.role, OFTEN) if example.hops == 1 else 1,
        "untold": UNTOLD.get(example.role, SELDOM) if not example.told else 1,
        "told": TOLD.get(example.role, 1) if example.told else 1,
    }


def main(
    found: Annotated[list[Path], typer.Argument(help="Files `all.jsonl`, as roles.data.examples has made them.")],
    *,
    out: Annotated[Path, typer.Option(help="The file to write.")],
    tokens: Annotated[float, typer.Option(help="About how many tokens in all.")] = BUDGET,
    quotes: Annotated[bool, typer.Option(help="Let the reader quote; without, only for yes and no.")] = True,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
) -> None:
    """Draw what is learned from, and print how many examples of each prompt."""
    examples = [example if quotes else without_quotes(example) for file in found for example in lines(file, Example)]
    kept = mix_examples(examples, budget=tokens, seed=seed)
    write_lines(out, map(asdict, kept))
    typer.echo(json.dumps(count_by_prompt(kept), indent=1))


def without_quotes(example: Example) -> Example:
    """Return a reader's example without citations, unless its answer is yes or no: others are found in the sources."""
    reply = json.loads(example.reply) if example.prompt == "reader/read" else {}
    if not reply or reply["answer"].lower() in ("yes", "no"):
        return example
    return replace(example, reply=json.dumps({**reply, "citations": []}, ensure_ascii=False, separators=(",", ":")))


def count_by_prompt(examples: Sequence[Example]) -> dict[str, Any]:
    """Return, by prompt, the examples, tokens, and shares of one hop, of unanswerable, and of yes."""
    own: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        own[example.prompt].append(example)
    return {
        prompt: {
            "examples": len(those),
            "tokens": round(sum(map(tokens, those))),
            "one hop": round(mean(each.hops == 1 for each in those), 2),
            "untold": round(mean(not each.told for each in those), 2),
            "yes": round(mean(each.reply == "Yes" for each in those), 2),
        }
        for prompt, those in sorted(own.items())
    }


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
