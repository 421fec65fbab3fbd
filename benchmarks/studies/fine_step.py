"""PAR-RAG's fine step, simulated: hops answered with the graph, without it, and with PageRank over triples.

    python -m benchmarks.studies.fine_step QUESTIONS TRIPLES [-k 5] [--every N] [--coarse MODE ...] [--simulate RATES]

QUESTIONS are training questions with "paragraphs" and a "decomposition" whose "paragraph" names the source of each
answer; the paragraphs of all are the collection. TRIPLES is a file for `sleuth triples import`. Prints JSON: how runs
end, hops answered with 95 % bootstrap intervals over questions, and calls, for each mode of coarse retrieval (drafts)
and each of fine retrieval (reviews). Vectors take part unless SLEUTH_EMBEDDER=none: without, hybrid goes by words.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from benchmarks.harness import Collection, collection, options, rows
from benchmarks.studies.per_hop import answered
from sleuth.graphs.methods.par_rag import graph as par_rag
from sleuth.tools.search import Mode
from sleuth.tools.storage import read_triples

BEFORE: dict[str, Mode] = {"hybrid": "hybrid", "graph": "graph", "graph-ppr, mentions": "graph-ppr"}
AFTER: dict[str, Mode] = {"graph-ppr, mentions and triples": "graph-ppr"}
"""Ways of fine retrieval, before and after the triples are there."""


def written(questions: Sequence[dict[str, Any]], folder: Path) -> tuple[Path, Path]:
    """Return the paragraphs as a corpus without repeats, and the questions with the ids of their gold."""
    ids: dict[tuple[str, str], str] = {}
    asked = []
    for row in questions:
        own = [ids.setdefault((each["title"], each["text"]), f"p{len(ids)}") for each in row["paragraphs"]]
        hops = [
            {"question": hop["question"], "answer": hop["answer"], "gold_id": own[hop["paragraph"]]}
            for hop in row["decomposition"]
        ]
        gold = list(dict.fromkeys(hop["gold_id"] for hop in hops))
        asked.append({**row, "paragraphs": None, "decomposition": hops, "gold_ids": gold})
    corpus = [{"id": id_, "title": title, "text": text} for (title, text), id_ in ids.items()]
    return _lines(folder / "corpus.jsonl", corpus), _lines(folder / "questions.jsonl", asked)


def _lines(file: Path, values: Sequence[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return file


async def imported(known: Collection, file: Path) -> int:
    """Take the triples over; how many there are."""
    marks = await asyncio.to_thread(known.library.triple_stats.fingerprints)
    found = read_triples(file, marks).found
    await known.library.triples(model="benchmark").put(found, version="import")
    return sum(map(len, found.values()))


async def judged(known: Collection, coarse: Mode, ways: dict[str, Mode], k: int, rates: str) -> dict[str, Any]:
    """Return the outcomes of all questions, for each way of fine retrieval."""
    lines = {}
    for way, fine in ways.items():
        settings = par_rag.Settings(coarse_mode=coarse, fine_mode=fine, coarse_k=k, fine_k=k, skip_supported=False)
        lines[way] = await answered("par-rag", known, settings, known.library, rates)
        print(f"coarse {coarse}, fine {way}: {lines[way]}", file=sys.stderr, flush=True)
    return lines


async def main() -> None:
    parser = options(__doc__, "questions", "k", "every", "simulate")
    parser.add_argument("triples", type=Path)
    parser.add_argument("--coarse", nargs="*", choices=get_args(Mode), default=["hybrid", "graph"])
    wanted = parser.parse_args()
    result: dict[str, Any] = {coarse: {} for coarse in wanted.coarse}
    with tempfile.TemporaryDirectory() as scratch:
        corpus, questions = written(list(rows(wanted.questions)), Path(scratch))
        async with collection(corpus, questions, "graph") as whole:
            known = replace(whole, golds=whole.golds[:: wanted.every])
            for coarse in wanted.coarse:
                result[coarse] |= await judged(known, coarse, BEFORE, wanted.k, wanted.simulate)
            triples = await imported(known, wanted.triples)
            for coarse in wanted.coarse:
                result[coarse] |= await judged(known, coarse, AFTER, wanted.k, wanted.simulate)
    print(json.dumps({"questions": len(known.golds), "triples": triples, "coarse": result}, indent=1))


if __name__ == "__main__":
    asyncio.run(main())
