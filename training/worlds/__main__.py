"""Write worlds: `python -m training.worlds --seed 7 --worlds 20 --out FOLDER`.

FOLDER/complete and FOLDER/gaps each contain `corpus.jsonl`, `questions.jsonl` (for `sleuth eval`) and `training.jsonl`
(questions with their paragraphs). Train on the two editions in separate collections: they contradict each other.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from sleuth.studio.cli.app import run_cli
from training.worlds.collection import EDITIONS, corpus_rows, question_rows, training_rows, worlds
from training.worlds.schema import Split


def write(seed: int, count: int, split: Split, out: Path) -> dict[str, dict[str, int]]:
    """Write the files of both editions; return the number of questions by edition and type."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in EDITIONS}
    files: dict[Path, list[dict[str, Any]]] = {}
    for complete, gaps in worlds(seed, count, split):
        for name, chapter in zip(EDITIONS, (complete, gaps), strict=True):
            counts[name].update(question.type for question in chapter.questions)
            rows = {
                "corpus": corpus_rows(chapter),
                "questions": question_rows(chapter, complete.edition),
                "training": training_rows(chapter, complete.edition, seed),
            }
            for file, lines in rows.items():
                files.setdefault(out / name / f"{file}.jsonl", []).extend(lines)
    for path, written in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in written).encode())
    return {name: dict(sorted(count.items())) for name, count in counts.items()}


def main(
    *,
    out: Annotated[Path, typer.Option(help="The folder to write to.")],
    worlds: Annotated[int, typer.Option(min=1, help="Number of worlds.")] = 20,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    split: Annotated[
        Split, typer.Option(help="Vocabulary and wordings: for training, or those held out from it.")
    ] = "train",
) -> None:
    """Write worlds, and print the number of questions by edition and type."""
    typer.echo(json.dumps(write(seed, worlds, split, out), indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
