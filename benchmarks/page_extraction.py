"""What is read out of the CRAG benchmark's pages, and how much of the gold answers stands in the ten best chunks.

    python benchmarks/page_extraction.py CRAG_FILE [--limit N]

CRAG_FILE is JSON Lines as the benchmark has it, plain or packed; SLEUTH_EMBEDDER may name another embedder. Ways to cut
a question's pages are compared: all visible text in windows of 600 characters, trafilatura's text in such windows, and
the paper's chunker, once as in the paper (what is beyond 600 characters of a sentence is dropped) and once with that
kept. Prints a table and JSON.
"""

import argparse
import asyncio
import json
import re
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from sleuth.studio.evaluation.questions import GoldQuestion, read_questions
from sleuth.tools.embedder import Embedder, Vectors, make_embedder
from sleuth.tools.pages.chunks import CHUNK_CHARS, chunk
from sleuth.tools.pages.page import Page, PageText, distinct
from sleuth.tools.pages.reading import read_pages
from sleuth.tools.pages.tables import table_reference
from sleuth.tools.settings import Settings
from sleuth.tools.text import normalise
from sleuth.tools.text_formats import parse_html

KEPT = 10
WINDOW = CHUNK_CHARS

Cut = Callable[[Page, PageText], list[str]]


def windows(text: str) -> list[str]:
    flat = " ".join(text.split())
    return [flat[at : at + WINDOW] for at in range(0, len(flat), WINDOW)]


def plain(page: Page, read: PageText) -> list[str]:
    soup = parse_html(normalise(page.html))
    for tag in soup(("script", "style")):
        tag.decompose()
    return windows(soup.get_text(" ") if page.html else read.text)


def chunked(*, keep_rest: bool) -> Cut:
    def cut(_: Page, read: PageText) -> list[str]:
        spans = chunk(read.text, read.sentences, keep_rest=keep_rest).spans
        return [read.text[start:end] for start, end in spans]

    return cut


WAYS: dict[str, Cut] = {
    "plain + windows": plain,
    "trafilatura + windows": lambda _, read: windows(read.text),
    "paper's chunker, dropping": chunked(keep_rest=False),
    "paper's chunker": chunked(keep_rest=True),
}


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def share(gold: set[str], kept: list[str]) -> float:
    return len(gold & words(" ".join(kept))) / len(gold)


def ranked(question: Vectors, chunks: list[str], embedder: Embedder) -> list[str]:
    if not chunks:
        return []
    scores = embedder.embed_passages(chunks) @ question
    return [chunks[at] for at in np.argsort(-scores, kind="stable")]


def as_long_as(length: int, chunks: list[str]) -> list[str]:
    """The first chunks that together are no longer."""
    lengths = list(accumulate(map(len, chunks)))
    return [piece for piece, end in zip(chunks, lengths, strict=True) if end <= length]


def measure(asked: GoldQuestion, pages: list[Page], read: list[PageText], embedder: Embedder) -> dict[str, Any]:
    gold, question = words(asked.answers[0]), embedder.embed_query(asked.question)
    tables, _ = table_reference(read)
    result: dict[str, Any] = {"question": asked.question, "answer": asked.answers[0]}
    for name, cut in WAYS.items():
        chunks = [piece for page, text in zip(pages, read, strict=True) for piece in cut(page, text)]
        found = ranked(question, chunks, embedder)
        kept = found[:KEPT]
        new = gold - words(asked.question)
        result[name] = {
            "chunks": len(chunks),
            "kept_characters": sum(map(len, kept)),
            "answer": share(gold, kept),
            "answer_in_equal_length": share(gold, as_long_as(KEPT * WINDOW, found)),
            "answer_and_tables": share(gold, [*kept, tables]),
            "answer_not_in_question": share(new, kept) if new else None,
        }
    return result


def described(read: PageText) -> dict[str, Any]:
    return {
        "page": read.name,
        "characters": len(read.text),
        "sentences": len(read.sentences),
        "chunks": len(chunk(read.text, read.sentences).spans),
        "tables": len(read.tables),
        "table_characters": sum(len(table.markdown) for table in read.tables),
        "warnings": list(read.warnings),
    }


def mean(results: list[dict[str, Any]], way: str, field: str) -> float:
    return round(fmean(found[way][field] for found in results if found[way][field] is not None), 3)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crag", type=Path)
    parser.add_argument("--limit", type=int, help="only the first questions")
    args = parser.parse_args()
    embedder = make_embedder(Settings())
    [file] = read_questions([args.crag])
    results, pages, given = [], [], 0
    for asked in file.questions[: args.limit]:
        given += len(asked.pages)
        different = distinct(asked.pages)
        read = await read_pages(different)
        results.append(measure(asked, different, read, embedder))
        pages += [described(text) for text in read]
    summary = {way: {field: mean(results, way, field) for field in results[0][way]} for way in WAYS}
    print(f"{given} pages, {len(pages)} different within their question\n")
    print(f"{'chars':>8}{'sents':>7}{'chunks':>7}{'tables':>7}{'in them':>9}  page")
    for page in pages:
        counts = [page[name] for name in ("characters", "sentences", "chunks", "tables", "table_characters")]
        print("{:>8,}{:>7,}{:>7,}{:>7,}{:>9,}".format(*counts) + f"  {page['page'][:60]}")
        print(*(f"{'':40}! {warning.partition(': ')[2]}\n" for warning in page["warnings"]), sep="", end="")
    print(
        f"\n{'answer recall@10 chunks':28}{'answer':>8}{'new':>8}{'+tables':>8}{'length':>8}{'equal':>8}{'chunks':>8}"
    )
    for way, found in summary.items():
        names = ("answer", "answer_not_in_question", "answer_and_tables")
        shares = "".join(f"{found[name]:8.3f}" for name in names)
        print(
            f"{way:28}{shares}{found['kept_characters']:8.0f}{found['answer_in_equal_length']:8.3f}{found['chunks']:8.0f}"
        )
    print(json.dumps({"given": given, "pages": pages, "questions": results, "summary": summary}))


if __name__ == "__main__":
    asyncio.run(main())
