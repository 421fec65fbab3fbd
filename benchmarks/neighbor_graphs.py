"""Neighbor graphs of pgvector: seconds to build, size, recall and time of a search, by the graph's settings.

    python -m benchmarks.neighbor_graphs [--passages 10000] [--corpus FILE --questions FILE] [--graphs 16,64 32,200]
        [--efforts 200 400 1000] [--json FILE]

Without FILES, passages and questions are generated (`benchmarks/growth/corpus.py`) and embedded without a model. FILES
are JSON lines with the fields `title` and `text`, and `question`; the embedder of the settings embeds them. A graph is
given by the neighbors of a vector and the effort of building; `--efforts` are those of a search: the vectors that it
keeps on its way through the graph. Recall is the share of the ten nearest vectors. The Postgres on the PATH must have
pgvector.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sqlalchemy import text

from benchmarks.growth.corpus import passage, questions
from benchmarks.harness import Projected, clock, write_json
from benchmarks.servers import postgres
from sleuth.studio.evaluation.run_folder import read_lines
from sleuth.tools.search.vectors import Vectors, pgvector_index
from sleuth.tools.search.vectors.embedder import Embedder, make_embedder
from sleuth.tools.search.vectors.pgvector_index import PgVectorIndex
from sleuth.tools.settings import Settings

K, ASKED, BATCH = 10, 100, 2_048

Row = dict[str, float | str]


def embedded(given: argparse.Namespace) -> tuple[Embedder, Vectors, Vectors]:
    """Return an embedder, and its vectors of the passages and of the questions."""
    embedder: Embedder
    if given.corpus:
        embedder = make_embedder(Settings())
        entries = read_lines(given.corpus)[: given.passages]
        wanted = [entry["question"] for entry in read_lines(given.questions)[:ASKED]]
    else:
        embedder = Projected()
        entries = [passage(at, 0) for at in range(given.passages)]
        wanted = [question for question, _ in questions(given.passages, 0, ASKED)]
    texts = [f"{entry['title']}\n{entry['text']}" for entry in entries]
    batches = [embedder.embed_passages(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
    return embedder, np.concatenate(batches), np.stack([embedder.embed_query(each) for each in wanted])


def searched(index: PgVectorIndex, vectors: Vectors, asked: Vectors) -> Row:
    """Return recall and the median time; passages with the score of the last one may replace each other."""
    shares, spent = [], []
    for question in asked:
        scores = vectors @ question
        least = np.partition(scores, -K)[-K] - 1e-3  # 16 bits per number are not exact
        with clock() as taken:
            found = index._nearest(question, K)
        spent.append(taken.spent.wall)
        shares.append(sum(scores[int(id_)] >= least for id_, _ in found) / K)
    return {"recall": round(float(np.mean(shares)), 3), "search_ms": round(1000 * float(np.median(spent)), 1)}


def measure(given: argparse.Namespace) -> Iterator[Row]:
    embedder, vectors, asked = embedded(given)
    pgvector_index.MAX_EXACT = 0
    with postgres(maintenance_work_mem="2GB") as server:
        for neighbors, effort in given.graphs:
            pgvector_index._NEIGHBORS, pgvector_index._BUILD_EFFORT = neighbors, effort
            index = PgVectorIndex(server.url, owner="", collection="graphs", embedder=embedder)
            index.clear()
            index._remember(dimension=vectors.shape[1])
            for at in range(0, len(vectors), BATCH):
                part = vectors[at : at + BATCH]
                index._change([str(at + row) for row in range(len(part))], part, [])
            with clock() as building:
                index.tidy()
            row: Row = {"graph": f"pgvector {neighbors} {effort}", "build_s": round(building.spent.wall, 1)}
            row["mb"] = round(size(index) / 1e6, 1)
            for searching in given.efforts:
                pgvector_index._EFFORT = searching
                yield row | {"effort": searching} | searched(index, vectors, asked)


def size(index: PgVectorIndex) -> int:
    """Return the bytes of the graph."""
    with index._transaction() as connection:
        query = text("SELECT pg_relation_size(CAST(:name AS regclass))")
        return int(connection.scalar(query, {"name": f"{index._table}{pgvector_index._GRAPH}"}))


def pair(given: str) -> tuple[int, int]:
    neighbors, _, effort = given.partition(",")
    return int(neighbors), int(effort)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=10_000)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--graphs", type=pair, nargs="+", default=[(16, 64), (32, 200)])
    parser.add_argument("--efforts", type=int, nargs="+", default=[200, 400, 1000])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    for row in measure(given):
        print(row, file=sys.stderr)
        rows.append(row)
    print(json.dumps(rows, indent=1))
    if given.json:
        write_json(given.json, rows)


if __name__ == "__main__":
    main()
