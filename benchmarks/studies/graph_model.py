"""Gain of RAS's graph model by its token, and by triples in place of text: the ablation of the paper's table 2.

    python -m sleuth.studio.training.roles.data.examples TRAIN... --methods ras --out TRIPLES
    python -m sleuth.studio.training.roles.data.examples TRAIN... --methods ras --set triples=false --out TEXTS
    python -m benchmarks.studies.graph_model TRIPLES/all.jsonl TEXTS/all.jsonl \
        --base SLEUTH_HOME/models/smollm2-135m-instruct --out FOLDER [--learn N] [--questions N]

Tunes three models from the same base with the same plan on the same questions: on triples with their token, on triples
alone, and on texts. Each plans and answers for questions that none has learned from; the first also without the token
that it was tuned with. Prompts are those of simulated runs, replies are not guided. Run again after an interruption, it
resumes. `FOLDER` then has a model that is served, in each of `graph`, `triples` and `texts`. For whole runs see
docs/explanation/graph-model.md.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from sleuth.agents.model_calls import Unparsable, parse
from sleuth.agents.roles.planning import NEXT_WITH_FINDING, NextWithFinding
from sleuth.agents.roles.reading import ANSWER_FROM_FACTS, FromFacts
from sleuth.studio.evaluation.scoring import difference, exact_match, f1, interval
from sleuth.studio.training.graph_llm import ANSWERING, PLANNING, Replies, tune
from sleuth.studio.training.roles.data import Example, read_all, write_lines
from sleuth.studio.training.roles.tuning import USUAL
from sleuth.tools.search.vectors import Embedder, make_embedder
from sleuth.tools.settings import Settings

Said = TypeVar("Said", FromFacts, NextWithFinding)

LEARNED = (*PLANNING, *ANSWERING)
ROLES = (ANSWER_FROM_FACTS, NEXT_WITH_FINDING)
MEASURES = ("valid", "f1", "em", "decision", "query")
"""Replies that can be read; answers; [SUBQ] or [SUFFICIENT]; the words of the sub-query."""


@dataclass(frozen=True)
class Variant:
    """A model: where it is kept, what it learns from, whether it has a token then, and whether when it is asked."""

    name: str
    folder: str
    examples: Path
    learned: bool
    asked: bool


def variants(triples: Path, texts: Path) -> list[Variant]:
    return [
        Variant("triples and token", "graph", triples, True, True),
        Variant("the same, asked without the token", "graph", triples, True, False),
        Variant("triples, tuned without the token", "triples", triples, False, False),
        Variant("texts", "texts", texts, False, False),
    ]


def drawn(examples: dict[Path, list[Example]]) -> list[str]:
    """Return the questions that all files have, in an order that is the same wherever it is drawn."""
    all_have = set.intersection(*({row.question for row in rows} for rows in examples.values()))
    return sorted(all_have, key=number)


def number(question: str) -> int:
    return int(sha256(question.encode()).hexdigest(), 16)


def tuned(each: Variant, learned: list[Example], given: argparse.Namespace, embedder: Embedder) -> Path:
    folder: Path = given.out / each.folder
    if not (folder / "report.json").is_file():
        examples = given.out / f"{each.folder}-examples.jsonl"
        write_lines(examples, map(asdict, learned))
        plan = replace(USUAL, epochs=given.epochs, rate=given.rate)
        tune(examples, given.base, folder, plan, embedder=embedder, encode=each.learned)
    return folder


def judged(
    each: Variant, folder: Path, unlearned: list[Example], given: argparse.Namespace, embedder: Embedder
) -> Iterator[dict[str, Any]]:
    """Yield the replies to one prompt of each role for each question, with their scores; those had before are read."""
    file = given.out / f"{each.name.replace(' ', '-').replace(',', '')}.jsonl"
    done = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []
    replies = None
    with file.open("a", encoding="utf-8") as lines:
        for role in ROLES:
            rows = list(one_each([row for row in unlearned if row.prompt == role.prompt]))
            before = [row for row in done if row["prompt"] == role.prompt]
            yield from before
            for row in rows[len(before) :]:
                replies = replies or Replies(given.base, folder, embedder)
                said = replies.say(row.messages, tokens=role.sampling.max_tokens, encode=each.asked)
                scores = {"prompt": role.prompt, "question": row.question, **scored(role.prompt, said, row.reply)}
                lines.write(json.dumps({**scores, "said": said}, ensure_ascii=False) + "\n")
                lines.flush()
                yield scores


def one_each(rows: list[Example]) -> Iterator[Example]:
    """Return one prompt of each question."""
    for question in sorted({row.question for row in rows}, key=number):
        own = [row for row in rows if row.question == question]
        yield own[number(question) // len(own) % len(own)]


def scored(prompt: str, said: str, right: str) -> dict[str, float | None]:
    """Return the score of a reply; an unreadable one scores 0."""
    if prompt == ANSWER_FROM_FACTS.prompt:
        gold, answer = parse(right, FromFacts).answer, parsed(said, FromFacts)
        if answer is None:
            return {"valid": 0.0, "f1": 0.0, "em": 0.0}
        return {"valid": 1.0, "f1": f1(answer.answer, [gold]), "em": exact_match(answer.answer, [gold])}
    wanted, plan = parse(right, NextWithFinding), parsed(said, NextWithFinding)
    query = f1(plan.query if plan else "", [wanted.query]) if wanted.query else None
    return {
        "valid": float(plan is not None),
        "decision": float(plan is not None and plan.plan == wanted.plan),
        "query": query,
    }


def parsed(said: str, output: type[Said]) -> Said | None:
    try:
        return parse(said, output)
    except Unparsable:
        return None


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return each measure's mean over questions, with its interval."""
    names = dict.fromkeys((row["prompt"], key) for row in rows for key in row if key in MEASURES)
    return {
        f"{prompt} {key}": interval(
            [row[key] for row in rows if row.get(key) is not None and row["prompt"] == prompt], seed=0
        )
        for prompt, key in names
    }


def compared(found: dict[str, list[dict[str, Any]]]) -> list[Any]:
    """Return every other model's answers against the first one's, question by question."""
    answers = {
        name: {row["question"]: row["f1"] for row in rows if row["prompt"] == ANSWER_FROM_FACTS.prompt}
        for name, rows in found.items()
    }
    first, *others = answers
    return [
        difference(
            first,
            name,
            "f1",
            [(answers[first][id], answers[name][id]) for id in answers[first] if id in answers[name]],
            seed=0,
        )
        for name in others
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("triples", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--learn", type=int, help="questions to learn from; default: all but those asked")
    parser.add_argument("--questions", type=int, default=200, help="questions that each role is asked for")
    parser.add_argument("--epochs", type=int, default=USUAL.epochs)
    parser.add_argument("--rate", type=float, default=USUAL.rate, help="the largest step size")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    embedder = make_embedder(Settings())
    examples = {file: [row for row in read_all(file) if row.prompt in LEARNED] for file in (given.triples, given.texts)}
    questions = drawn(examples)
    asked, learned = set(questions[: given.questions]), set(questions[given.questions :][: given.learn])
    found = {}
    for each in variants(given.triples, given.texts):
        rows = examples[each.examples]
        folder = tuned(each, [row for row in rows if row.question in learned], given, embedder)
        unlearned = [row for row in rows if row.question in asked]
        found[each.name] = list(judged(each, folder, unlearned, given, embedder))
        print(json.dumps({each.name: summary(found[each.name])}), flush=True)
    table = {"models": {name: summary(rows) for name, rows in found.items()}, "differences": compared(found)}
    (given.out / "table.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
