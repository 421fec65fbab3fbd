"""Kills the ingest of a corpus on the way, as often as asked, and counts what the store then holds.

    python benchmarks/ingest_kill.py CORPUS [--kills N] [--seed S] [--home FOLDER]

Every id of the corpus must be in the catalogue, in the keyword index and in Chroma, each once.
"""

import argparse
import asyncio
import gzip
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from sleuth.graphs.ingest import IngestProgress, ingest
from sleuth.tools.catalogue import Catalogue
from sleuth.tools.database import catalogue_url
from sleuth.tools.embedder import make_embedder
from sleuth.tools.indexes import ALL, Indexes
from sleuth.tools.settings import Settings


def ids_of(corpus: Path) -> list[str]:
    with gzip.open(corpus, "rt", encoding="utf-8") if corpus.suffix == ".gz" else corpus.open(encoding="utf-8") as file:
        return [json.loads(line)["id"] for line in file]


async def child(corpus: Path, home: Path) -> None:
    """One ingest, which says on each line how many passages it has embedded."""

    def tell(progress: IngestProgress) -> None:
        print(progress.embedded, flush=True)

    print(await ingest([corpus], settings=Settings(home=home), on_progress=tell))


def start(corpus: Path, home: Path) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, str(corpus), "--home", str(home), "--child"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_after(corpus: Path, home: Path, passages: int, pause: float) -> None:
    """Starts an ingest and kills it a moment after it has embedded this many passages."""
    process = start(corpus, home)
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip().isdigit() and int(line) >= passages:
            break
    time.sleep(pause)
    process.send_signal(signal.SIGKILL)
    process.wait()
    print(f"killed {pause:.1f} s after {passages} passages")


def finish(corpus: Path, home: Path) -> None:
    process = start(corpus, home)
    said, _ = process.communicate()
    if process.returncode != 0:
        sys.exit("the last ingest failed")
    print(said.splitlines()[-1])


def check(what: str, wanted: Iterable[str], found: Iterable[str]) -> bool:
    want, have = Counter(wanted), Counter(found)
    lost, doubled = want - have, have - want
    print(f"{what:14} {have.total():8} passages, {lost.total()} lost, {doubled.total()} doubled or foreign")
    return not lost and not doubled


def verify(corpus: Path, home: Path) -> bool:
    settings = Settings(home=home)
    catalogue = Catalogue(
        catalogue_url(home, settings.database_url), owner=settings.owner, collection=settings.collection
    )
    indexes = Indexes(settings, catalogue, make_embedder(settings))
    wanted = ids_of(corpus)
    right = [check("catalogue", wanted, catalogue.passage_ids()) and catalogue.count_passages() == len(wanted)]
    for name in ALL:
        index = indexes.ready(name, lambda _name, _passages: None)
        right.append(check(index.name, wanted, index.ids()) and index.count() == len(wanted))
    right.append(not indexes.notes)
    print(*indexes.notes, sep="\n")
    indexes.close()
    catalogue.close()
    return all(right)


def sweep(corpus: Path, home: Path, kills: int, seed: int) -> None:
    draw = random.Random(seed)
    share = len(ids_of(corpus)) // (kills + 1)
    for _ in range(kills):
        kill_after(corpus, home, draw.randint(share // 2, share), draw.uniform(0.0, 3.0))
    finish(corpus, home)
    if not verify(corpus, home):
        sys.exit("the store differs from the corpus")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--home", type=Path, help="keep the store here")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        asyncio.run(child(args.corpus, args.home))
        return
    with tempfile.TemporaryDirectory() as scratch:
        sweep(args.corpus, args.home or Path(scratch), args.kills, args.seed)


if __name__ == "__main__":
    main()
