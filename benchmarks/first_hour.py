"""The first hour of a newcomer: a folder of 40 ordinary files, and twelve questions in all methods.

    python -m benchmarks.first_hour folder FOLDER
    sleuth ingest FOLDER
    python -m benchmarks.first_hour ask RESULTS [--methods auto plain-rag ...] [--parallel 4]

The folder has letters, tables and slides of one invented project, texts of examples/corpus, and manuals of
/usr/share/doc (Debian; those that are not installed are left out). Nine questions have a known answer in one file, or
in two; three have none. `ask` appends a line for each run to RESULTS, skips those that it has, and prints a table: the
runs that failed, right answers, refusals of the three, answers that replaced another one, and seconds.
"""

import asyncio
import gzip
import json
import random
import shutil
import time
from collections.abc import Iterable
from email.message import EmailMessage
from pathlib import Path
from typing import Annotated, Any

import docx
import openpyxl
import pptx
import typer

from benchmarks.harness import EXAMPLES
from sleuth.graphs.core.answer import is_weak
from sleuth.graphs.registry import METHODS
from sleuth.studio.client.sleuth import Sleuth, open_sleuth
from sleuth.studio.evaluation.run_folder import append_line, read_lines
from sleuth.studio.evaluation.scoring import contained, f1
from sleuth.tools.errors import SleuthError

app = typer.Typer(help=__doc__)

QUESTIONS: dict[str, tuple[str, ...]] = {
    "Which company supplies the pumps of the Halden waterworks?": ("Corvane Ltd", "Corvane"),
    "How much did the Halden waterworks cost?": ("EUR 418,000", "418,000", "418000"),
    "In which town did the meeting of 14 March take place?": ("Kassel",),
    "How many members does the steering committee of the Halden project have?": ("five", "5"),
    "Who is the managing director of Corvane Ltd?": ("Mira Tolland",),
    "In which town does the managing director of the company that supplies the pumps of Halden live?": ("Aldmoor",),
    "Which of the two reservoirs of the Halden waterworks is larger, the north or the south reservoir?": ("south",),
    "Who wrote the Shared MIME-info Database specification?": ("Thomas Leonard",),
    "Which version of Libtasn1 does its manual describe?": ("4.19.0",),
    "How much did the Nordlicht project cost?": (),
    "What is the telephone number of Mira Tolland?": (),
    "Which company supplies the turbines of the Halden waterworks?": (),
}
"""Questions with their possible answers, none where the folder has none."""

MANUALS = (
    "libtasn1-doc/libtasn1.pdf",
    "shared-mime-info/shared-mime-info-spec.pdf",
    "zlib1g-dev/crc-doc.1.0.pdf.gz",
    "base-passwd/users-and-groups.html",
    "libffi8/html/The-Basics.html",
    "libffi8/html/Primitive-Types.html",
    "python3/python-policy.html",
    "python3/python-policy.txt.gz",
    "dpkg/spec/triggers.txt",
    "libasound2/examples/asoundrc.txt",
    "systemd/ENVIRONMENT.md.gz",
    "zstd/CONTRIBUTING.md.gz",
    "strace/NEWS.gz",
    "libpng16-16/libpng-manual.txt.gz",
    "python3-pkg-resources/pkg_resources.rst.gz",
)
EXTRACTS = 13
"""Files of examples/corpus."""


def _mails(folder: Path) -> None:
    for name, sender, subject, text in [
        (
            "minutes",
            "Ada Lund",
            "Minutes of 14 March",
            "The meeting of 14 March took place in Kassel. The next one is planned in Leeds on 2 May.",
        ),
        (
            "offer",
            "Jon Brenn",
            "Offer for pumps",
            "Brennholt GmbH offers two pumps for Halden. The offer was declined on 9 February.",
        ),
        (
            "congratulations",
            "Ada Lund",
            "Mira Tolland",
            "Mira Tolland has lived in Aldmoor since 2009. She sends her regards to the whole team.",
        ),
    ]:
        mail = EmailMessage()
        mail["From"], mail["To"] = f"{sender} <{name}@example.org>", "Team <team@example.org>"
        mail["Subject"], mail["Date"] = subject, "Thu, 16 Mar 2023 09:00:00 +0100"
        mail.set_content(f"Dear all,\n\n{text}\n\nBest regards\n{sender}\n")
        (folder / f"{name}.eml").write_bytes(bytes(mail))


def _documents(folder: Path) -> None:
    for name, heading, text in [
        ("contract", "Contract for the Halden waterworks", "Corvane Ltd supplies the pumps of the Halden waterworks."),
        ("corvane", "Corvane Ltd", "Corvane Ltd makes pumps. Its managing director is Mira Tolland, an engineer."),
    ]:
        document = docx.Document()
        document.add_heading(heading)
        document.add_paragraph(f"{text} This document was approved by the works council.")
        document.save(str(folder / f"{name}.docx"))
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[1])
    title, body = slide.placeholders
    title.text = "Halden: organisation"
    body.text = "The steering committee of the Halden project has five members.\nIt meets each quarter."
    slides.save(str(folder / "kickoff.pptx"))


def _tables(folder: Path) -> None:
    costs = openpyxl.Workbook()
    costs.active.append(["project", "year", "cost in EUR"])
    for row in (["Halden waterworks", 2023, "EUR 418,000"], ["Immer bridge", 2022, "EUR 96,500"]):
        costs.active.append(row)
    costs.save(folder / "costs.xlsx")
    digits, chance = openpyxl.Workbook(), random.Random(0)
    for _ in range(40):
        digits.active.append([chance.randrange(10) for _ in range(60)])
    digits.save(folder / "readings.xlsx")
    (folder / "reservoirs.csv").write_text("reservoir,volume in m3\nnorth reservoir,1200\nsouth reservoir,3400\n")
    (folder / "staff.tsv").write_text("name\trole\nAda Lund\tproject manager\nBo Ried\tengineer\n")
    cells = [{"cell_type": "markdown", "metadata": {}, "source": ["# Flow\n", "Halden pumps 80 litres a second."]}]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "flow.ipynb").write_text(json.dumps(notebook))
    (folder / "settings.json").write_text('{"pumps": 2}')


@app.command()
def folder(target: Path) -> None:
    """Make the folder."""
    target.mkdir(parents=True)
    for name in MANUALS:
        file = Path("/usr/share/doc", name)
        if file.exists():
            data = file.read_bytes()
            kept = target / f"{name.partition('/')[0]}-{file.name.removesuffix('.gz')}"
            kept.write_bytes(gzip.decompress(data) if file.suffix == ".gz" else data)
    for file in sorted((EXAMPLES / "corpus").iterdir())[:EXTRACTS]:
        shutil.copy(file, target)
    _mails(target)
    _documents(target)
    _tables(target)
    kinds = {file.suffix for file in target.iterdir()}
    print(f"{len(list(target.iterdir()))} files of {len(kinds)} types: {', '.join(sorted(kinds))}")


async def _run(opened: Sleuth, method: str, question: str) -> dict[str, Any]:
    began = time.monotonic()
    row: dict[str, Any] = {"method": method, "question": question, "model": opened.model}
    try:
        answer = await opened.ask(question, method=method)
    except SleuthError as error:
        return row | {"status": "failed", "text": str(error)}
    return row | {
        "status": answer.status,
        "text": answer.text,
        "weak": is_weak(answer.status, answer.support),
        "replaced": answer.support.get("replaced") if answer.support else None,
        "seconds": round(time.monotonic() - began, 1),
        "calls": answer.cost["calls"],
        "warnings": list(answer.warnings),
    }


def _is_right(row: dict[str, Any]) -> bool:
    golds = list(QUESTIONS[row["question"]])
    if not golds:
        return row["status"] not in ("answered", "failed")
    return row["status"] == "answered" and (f1(row["text"], golds) >= 0.5 or contained(row["text"], golds) > 0)


def _print_table(rows: Iterable[dict[str, Any]]) -> None:
    rows = list(rows)
    print("| method | failed | right of 9 | of these weak | refused of 3 | replaced | median s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        right = [row for row in own if QUESTIONS[row["question"]] and _is_right(row)]
        refused = [row for row in own if not QUESTIONS[row["question"]] and _is_right(row)]
        seconds = sorted(row["seconds"] for row in own if "seconds" in row)
        numbers = [
            sum(row["status"] == "failed" for row in own),
            len(right),
            sum(bool(row["weak"]) for row in right),
            len(refused),
            sum(bool(row.get("replaced")) for row in own),
            seconds[len(seconds) // 2] if seconds else "",
        ]
        print(f"| {method} | {' | '.join(map(str, numbers))} |")


@app.command()
def ask(
    results: Path,
    methods: Annotated[list[str] | None, typer.Option(help="All methods by default.")] = None,
    parallel: Annotated[int, typer.Option(help="Runs at a time.")] = 4,
) -> None:
    """Ask the questions, and print the table."""
    asyncio.run(_ask(results, methods or list(METHODS), parallel))
    _print_table(read_lines(results))


async def _ask(results: Path, methods: list[str], parallel: int) -> None:
    done = {(row["method"], row["question"]) for row in read_lines(results)}
    turn = asyncio.Semaphore(parallel)
    async with open_sleuth() as opened, asyncio.TaskGroup() as group:

        async def run(method: str, question: str) -> None:
            async with turn:
                append_line(results, await _run(opened, method, question))

        for method in methods:
            for question in QUESTIONS:
                if (method, question) not in done:
                    group.create_task(run(method, question))


if __name__ == "__main__":
    app()
