"""How reading in, search, memory and disk grow with the number of passages, made up by corpus.py.

    python -m benchmarks.growth.passages --out FOLDER [--sizes 1000 10000 100000 300000] [--embedder none|projected]
        [--database sqlite|postgres] [--vectors embedded|server] [--questions N] [--seed S] [--keep]

Each size is read in by one process and searched by another, so that each has a peak of memory of its own. A size that
is in FOLDER/growth.json for the same stores is not measured again: if killed, rerun the same command to resume.
`projected` makes vectors of 384 numbers from words, in less time than a model; that time is measured separately, and is
not in the rate. Postgres and Chroma's server are started for each size (servers.py), and their files counted as
sleuth's are. At the end come triples, nine for a passage, and questions by graph-ppr: they are in no other figure.

For each measure an exponent is fitted by least squares over the logarithms of size and measure: 1 is linear growth. As
what is there from the start hides growth at small sizes, `last` is the exponent between the two largest. Writes
growth.json and growth.svg, and prints a table.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from benchmarks.growth import corpus as made_up
from benchmarks.growth.plot import KEY, draw, exponents, table
from benchmarks.growth.servers import Server, chroma, postgres
from sleuth.tools.storage import catalogue_url

Row = dict[str, Any]
STORES = {"catalogue": "catalogue.db*", "keyword": "keywords", "graph": "mentions", "chroma": "chroma"}
TABLES = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'sleuth%'"


def apart(what: str, given: dict[str, Any]) -> Row:
    """Return a part of the measurement in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.growth.measures", what, json.dumps(given)],
        check=True,
        stdout=subprocess.PIPE,
    )
    measured: Row = json.loads(done.stdout)
    return measured


def bytes_of(place: Path) -> int:
    files = place.rglob("*") if place.is_dir() else [place]
    return sum(file.stat().st_size for file in files if file.is_file())


def disk(home: Path, database: Server | None, vectors: Server | None) -> dict[str, float]:
    """Return megabytes by store, after the writing process has ended."""
    found = {store: sum(map(bytes_of, home.glob(pattern))) for store, pattern in STORES.items()}
    if database:
        with create_engine(catalogue_url(home, database.url)).connect() as connection:
            found["catalogue"] = int(connection.scalar(text(TABLES)) or 0)
    if vectors:
        found["chroma"] = bytes_of(vectors.folder)
    return {f"{store}_mb": size / 1e6 for store, size in found.items() if size} | {"disk_mb": sum(found.values()) / 1e6}


def server_mib(server: Server) -> float:
    """Return a server's peak memory so far; 0 on systems without that value."""
    status = Path(f"/proc/{server.pid}/status")
    peaks = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(peaks[0]) / 1024 if peaks else 0.0


def measure(given: argparse.Namespace, passages: int) -> Row:
    home, corpus = given.out / f"home-{passages}", given.out / f"corpus-{passages}.jsonl"
    shutil.rmtree(home, ignore_errors=True)
    made_up.write(corpus, passages, given.seed)
    with ExitStack() as stack:
        database = stack.enter_context(postgres()) if given.database == "postgres" else None
        vectors = stack.enter_context(chroma()) if given.vectors == "server" else None
        asked = {
            "home": str(home.absolute()),
            "corpus": str(corpus.absolute()),
            "passages": passages,
            "collection": f"growth-{passages}",
            "seed": given.seed,
            "embedder": given.embedder,
            "questions": given.questions,
            "database_url": database.url if database else None,
            "chroma_url": vectors.url if vectors else None,
        }
        row = apart("ingest", asked) | disk(home, database, vectors) | {"corpus_mb": bytes_of(corpus) / 1e6}
        row |= apart("search", asked)
        row |= {"chroma_server_mib": server_mib(vectors)} if vectors else {}
    if not given.keep:
        shutil.rmtree(home)
        corpus.unlink()
    return row


def sizes_left(rows: list[Row], given: argparse.Namespace) -> Iterator[tuple[Row, int]]:
    """Return the sizes that are not measured yet, smallest first, with their identification."""
    for passages in sorted(given.sizes):
        key = {name: getattr(given, name) for name in KEY[:-1]} | {"passages": passages}
        if not any(key.items() <= row.items() for row in rows):
            yield key, passages


def report(rows: list[Row], out: Path) -> None:
    """Write what was measured so far, with fits for each set of stores, and draws it."""
    rows.sort(key=lambda row: [row[name] for name in KEY])
    stores: dict[str, list[Row]] = {}
    for row in rows:
        stores.setdefault(", ".join(str(row[name]) for name in KEY[:3]), []).append(row)
    fits = {name: exponents(own, "passages") for name, own in stores.items()}
    written = json.dumps({"rows": rows, "fits": fits}, indent=1)
    draft = out / "growth.json.new"
    draft.write_text(written + "\n", encoding="utf-8")
    draft.replace(out / "growth.json")
    largest = max(stores, key=lambda name: (len(stores[name]), stores[name][-1]["passages"]))
    if fits[largest]:
        (out / "growth.svg").write_text(draw(stores[largest], fits[largest]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 300_000])
    parser.add_argument("--embedder", choices=("none", "projected"), default="none")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--vectors", choices=("embedded", "server"), default="embedded")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="leave corpora and stores in FOLDER")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "growth.json"
    rows: list[Row] = json.loads(file.read_text(encoding="utf-8"))["rows"] if file.exists() else []
    for key, passages in sizes_left(list(rows), given):
        print(f"{passages} passages", file=sys.stderr)
        rows.append(key | measure(given, passages))
        report(rows, given.out)
    print(table([row for row in rows if all(row[name] == getattr(given, name) for name in KEY[:-1])], "passages"))


if __name__ == "__main__":
    main()
