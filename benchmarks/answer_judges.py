"""Compare who recognizes wrong answers better: the evidence checker, or the model that gave them.

    python -m benchmarks.reply_forms DATA HOMES --half 0 --questions 60 --forms reader --out forms.jsonl
    python -m benchmarks.answer_judges HOMES forms.jsonl --half 0 --questions 60 --out judged.jsonl

Judges the reader's answers in `forms.jsonl` over the same passages. The model is asked to continue its own call, whose
prefix the server has cached: the judgement is the probability of yes against no in its next token. Prints the area
under the ROC curve for right answers (F1 at least 0.5) against wrong ones, by set. Choose a judge on half 0.
"""

import argparse
import asyncio
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import append_line, read_lines
from benchmarks.reply_forms import SETS, shown_file, to_messages
from sleuth.agents.formatting import Source
from sleuth.agents.llm.completions import read_completion
from sleuth.agents.llm.endpoint import Endpoint
from sleuth.agents.model_calls.logprobs import first_token_probability
from sleuth.tools.evidence_checker import Evidence, EvidenceChecker
from sleuth.tools.settings import Settings
from training.evidence_checker.measure import area

QUESTION = 'Do the sources state that "{answer}" is the answer to the question? Reply with Yes or No.'


async def probability(endpoint: Endpoint, model: str, row: dict[str, Any], answer: str) -> float:
    """Return the model's probability of yes against no; 0.5 if neither is among its 20 most likely tokens."""
    sources = [Source(title=title, text=text) for title, text in row["sources"]]
    answered = json.dumps({"answerable": True, "answer": answer, "citations": []}, separators=(",", ":"))
    prompt = [
        *to_messages("reader", sources, row["question"]),
        {"role": "assistant", "content": answered},
        {"role": "user", "content": QUESTION.format(answer=answer)},
    ]
    body = {"model": model, "messages": prompt, "max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": 20}
    reply = read_completion(await endpoint.complete(body), model=model, seconds=0.0, warnings=[])
    return first_token_probability(reply)[0]


def support(checker: EvidenceChecker, row: dict[str, Any], answer: str) -> float:
    """Return the checker's support of an answer by all passages."""
    evidence = [Evidence(title=title, text=text) for title, text in row["sources"]]
    return checker.read(row["question"], evidence).support_of(answer)


async def main() -> None:
    """Judge and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("homes", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--half", type=int, default=0)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    shown = {
        (name, row["id"]): row
        for name in SETS
        for row in json.loads(shown_file(given.homes / name, given.half, given.questions).read_text())
    }
    done = read_lines(given.out)
    judged = {(row["set"], row["id"]) for row in done}
    checker = EvidenceChecker.load()
    async with Endpoint(Settings()) as endpoint:
        model = (await endpoint.models())[0].name
        for answer in read_lines(given.answers):
            key = (answer["set"], answer["id"])
            if answer["form"] != "reader" or not answer["answer"] or key in judged:
                continue
            row, began = shown[key], time.monotonic()
            of_model = await probability(endpoint, model, row, answer["answer"])
            between = time.monotonic()
            of_checker = await asyncio.to_thread(support, checker, row, answer["answer"])
            seconds = {"model": between - began, "checker": time.monotonic() - between}
            result = {"set": key[0], "id": key[1], "f1": answer["f1"], "seconds": seconds}
            done.append({**result, "model": of_model, "checker": of_checker})
            append_line(given.out, done[-1])
    for name in (*SETS, "all"):
        rows = [row for row in done if name in (row["set"], "all")]
        for judge in ("model", "checker"):
            right, wrong = (
                [row[judge] for row in rows if (row["f1"] >= 0.5) is is_right] for is_right in (True, False)
            )
            seconds = sum(row["seconds"][judge] for row in rows) / len(rows)
            print(
                name, judge, f"{len(right)} right, {len(wrong)} wrong", area(right, wrong, seed=0), f"{seconds:.2f} s"
            )


if __name__ == "__main__":
    asyncio.run(main())
