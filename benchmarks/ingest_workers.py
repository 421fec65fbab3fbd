"""Ingest of PDF files with one and with several readers, in turns, each in a process of its own.

    python -m benchmarks.ingest_workers [--files N] [--workers N] [--rounds R]

The files are made first, each of some pages of sentences of random words, with a name in most of them. The serial part
is the share of the main process in all processor time; with it, the script prints what Amdahl's law gives for more
processors.
"""

import argparse
import asyncio
import random
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import in_own_process, processor_seconds
from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.collection import make_passage_embedder
from sleuth.tools.collection.ray_cluster import connect
from sleuth.tools.settings import Settings

PAGES, LINES = 40, 45


def write_pdf(path: Path, chooser: random.Random) -> None:
    """Write pages of lines of text, as plain PDF."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    kids = []
    words = ["".join(chooser.choices("aeioulnrst", k=chooser.randint(2, 9))) for _ in range(3_000)]
    for _ in range(PAGES):
        lines = [f"{' '.join(chooser.choices(words, k=9))} {chooser.choice(words).title()}." for _ in range(LINES)]
        content = "BT /F1 10 Tf 14 TL 50 780 Td " + " ".join(f"({line.capitalize()}) Tj T*" for line in lines) + " ET"
        kids.append(f"{len(objects) + 1} 0 R")
        font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
        box = "/MediaBox [0 0 612 842]"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R {box} /Resources << /Font << /F1 {font} >> >> "
            f"/Contents {len(objects) + 2} 0 R >>".encode()
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream".encode())
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {PAGES} >>".encode()
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    path.write_bytes(bytes(out) + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode())


def measured(folder: Path, workers: int, embedder: str, ray: str | None = None) -> dict[str, float]:
    """Ingest the folder into a new home; return seconds, and those of processor time of this and of child processes."""
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home), ingest_workers=workers, embedder=embedder, ray=ray)
        used = make_passage_embedder(settings)
        if embedder != "none":
            used.embed_query("warm up")
        if ray:
            connect(ray)
        before = processor_seconds(resource.RUSAGE_SELF)
        began = time.perf_counter()
        report = asyncio.run(ingest([folder], settings=settings, embedder=used))
        seconds = time.perf_counter() - began
    main = processor_seconds(resource.RUSAGE_SELF) - before
    return {
        "seconds": seconds,
        "passages": report.passages,
        "main": main,
        "children": processor_seconds(resource.RUSAGE_CHILDREN),
    }


def show(name: str, rounds: list[dict[str, float]]) -> None:
    """Print the means of some rounds, the range of seconds, and Amdahl's estimate."""
    seconds = [each["seconds"] for each in rounds]
    mean = sum(seconds) / len(seconds)
    main, all_ = (sum(sum(each[part] for part in parts) for each in rounds) / len(rounds) for parts in PARTS)
    rate, used = rounds[0]["passages"] / mean, all_ / mean
    print(
        f"{name}: {mean:.1f} s ({min(seconds):.1f} to {max(seconds):.1f}), {rate:.0f} passages/s, {used:.2f} processors"
    )
    print(f"  processor time {all_:.1f} s, of which the main process {main:.1f} s")
    serial = main / all_
    estimates = ", ".join(f"{count}: {1 / (serial + (1 - serial) / count):.1f}" for count in (2, 8, 64))
    print(f"  serial part {serial:.2f}; by Amdahl's law, times faster than one processor: {estimates}")


PARTS = ("main",), ("main", "children")


def compare(folder: Path, workers: int, rounds: int, embedder: str) -> None:
    """Measure in turns, and print."""
    found: dict[int, list[dict[str, float]]] = {1: [], workers: []}
    for turn in range(rounds):
        for count in (1, workers) if turn % 2 == 0 else (workers, 1):
            found[count].append(in_own_process(measured, folder, count, embedder))
    for count, own in found.items():
        show(f"{count} readers", own)
    totals = [sum(each["seconds"] for each in own) for own in found.values()]
    print(f"ratio {totals[0] / totals[1]:.2f}")


def run(description: str | None, compare: Callable[[Path, int, int, str], None], *, workers: int) -> None:
    """Read the options, make the files and compare."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=24)
    parser.add_argument("--workers", type=int, default=workers)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--embedder", default="none")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for at in range(options.files):
            write_pdf(Path(folder) / f"{at:03}.pdf", random.Random(at))
        compare(Path(folder), options.workers, options.rounds, options.embedder)


if __name__ == "__main__":
    run(__doc__, compare, workers=2)
