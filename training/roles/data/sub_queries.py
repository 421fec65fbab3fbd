"""Let a model write the steps of questions: `python -m training.roles.data.sub_queries FILE --out FILE`.

The model at SLEUTH_MODEL_URL writes one sub-query for each gold passage, given the earlier ones, or none for a passage
that does not help (Jiang et al., C.1 and C.2). If interrupted, rerun the same command: questions in --out are done.
"""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from sleuth import prompts
from sleuth.agents.formatting import Source, Step
from sleuth.agents.llm.client import LLMClient
from sleuth.agents.model import Model, Request
from sleuth.agents.model_calls.caller import render_messages
from sleuth.agents.model_calls.output_parsing import Unparsable, parse
from sleuth.agents.roles.inputs import ReadInput
from sleuth.agents.roles.planning import SUB_QUERY, SubQueryOfDocument
from sleuth.studio.cli.app import run_cli
from sleuth.tools.settings import Settings
from sleuth.tools.text.normalization import single_line
from training.questions import TrainingQuestion, lines
from training.simulation import gold_of
from training.simulation.wording import mentions


async def write_steps(model: Model, row: TrainingQuestion) -> list[dict[str, Any]]:
    """Return the steps that a model writes for a question, in the form of a questions file's `decomposition`.

    Passages are shown in an order in which one leads to the next, if there is one. The list is empty if a step's answer
    is not in its passage, or if the steps do not lead to the answer.
    """
    gold = {str(at): (each.title, each.text) for at, each in enumerate(row.paragraphs) if each.is_supporting}
    known = gold_of({"question": row.question, "answer": row.answer, "gold_ids": list(gold)}, gold)
    steps: list[tuple[Step, int]] = []
    for hop in known.hops:
        sources = (Source(title=hop.title, text=hop.text),)
        given = ReadInput(question=row.question, sources=sources, known=tuple(step for step, _ in steps))
        said = await _ask(model, given, f"{row.id}-{hop.passage}")
        question, answer = single_line(said.question), single_line(said.answer)
        if bool(question) != bool(answer) or (answer and not mentions(f"{hop.title} {hop.text}", answer)):
            return []
        if question:
            steps.append((Step(question=question, answer=answer), int(hop.passage)))
    return _linked(row, steps)


async def _ask(model: Model, given: ReadInput, call_id: str) -> SubQueryOfDocument:
    """Return the model's sub-query; half of one, which counts as no reply, if it cannot be parsed."""
    request = Request(
        call_id=call_id,
        role=SUB_QUERY.name,
        prompt=SUB_QUERY.prompt,
        messages=render_messages(SUB_QUERY, given),
        input=asdict(given),
        sampling=SUB_QUERY.sampling,
        schema=SUB_QUERY.schema(),
    )
    reply = await model.call(request)
    try:
        return parse(reply["text"], SUB_QUERY.output, cut_off=reply["finish"] == "length")
    except Unparsable:
        return SubQueryOfDocument(question="?")


def _linked(row: TrainingQuestion, steps: Sequence[tuple[Step, int]]) -> list[dict[str, Any]]:
    """Return steps that refer to earlier answers by number; none if the last answer is not the question's."""
    linked: list[dict[str, Any]] = []
    for step, paragraph in steps:
        question = step.question
        for number, earlier in enumerate(linked, start=1):
            if mentions(question, earlier["answer"]) and not mentions(row.question, earlier["answer"]):
                question = re.sub(re.escape(earlier["answer"]), f"#{number}", question, flags=re.IGNORECASE)
        linked.append({"question": question, "answer": step.answer, "paragraph": paragraph})
    if not linked:
        return []
    last = linked[-1]["answer"]
    if mentions(last, row.answer) or mentions(row.answer, last):
        return [*linked[:-1], {**linked[-1], "answer": row.answer}]
    return linked if row.type == "comparison" else []


async def write_all(model: Model, rows: Iterable[TrainingQuestion], save: Callable[[dict[str, Any]], None]) -> None:
    """Save every row with its steps as soon as they are written; rows that have steps are saved as they are."""
    await prompts.read()

    async def one(row: TrainingQuestion) -> None:
        steps = row.model_dump()["decomposition"] or await write_steps(model, row)
        save({**row.model_dump(), "decomposition": steps})

    await asyncio.gather(*(one(row) for row in rows))


async def _write_with_served(rows: Sequence[TrainingQuestion], save: Callable[[dict[str, Any]], None]) -> None:
    async with LLMClient.open(Settings()) as model:
        await write_all(model, rows, save)


def main(
    file: Annotated[Path, typer.Argument(help="Training questions with their paragraphs, in JSON Lines.")],
    *,
    out: Annotated[Path, typer.Option(help="File for the same questions with steps, which is continued.")],
    limit: Annotated[int | None, typer.Option(help="Questions to write steps for; default: all.")] = None,
) -> None:
    """Write the questions of a file with steps, and print how many have some."""
    done = {row.id for row in lines(out, TrainingQuestion)} if out.is_file() else set[str]()
    rows = [row for row in [*lines(file, TrainingQuestion)][:limit] if row.id not in done]
    with out.open("a", encoding="utf-8") as kept, typer.progressbar(length=len(rows), file=sys.stderr) as bar:

        def save(row: dict[str, Any]) -> None:
            kept.write(json.dumps(row, ensure_ascii=False) + "\n")
            kept.flush()
            bar.update(1)

        asyncio.run(_write_with_served(rows, save))
    written = [*lines(out, TrainingQuestion)]
    typer.echo(json.dumps({"questions": len(written), "with_steps": sum(bool(row.decomposition) for row in written)}))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
