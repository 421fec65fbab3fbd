"""Ingest of PDF files with one and with several readers, in turns, each in a process of its own.

    python -m benchmarks.ingest_workers [--files N] [--workers N] [--rounds R]

The files are made first, each of some pages of random words. The serial part is that of Amdahl's law for the measured
ratio; with it, the script prints what more processors would give.
"""

import argparse
import asyncio
import random
import resource
import tempfile
import time
from pathlib import Path

from benchmarks.harness import in_own_process
from sleuth.graphs.ingestion import ingest
from sleuth.tools.search.vectors import make_embedder
from sleuth.tools.settings import Settings

PAGES, LINES = 40, 45


def write_pdf(path: Path, chooser: random.Random) -> None:
    """Write pages of lines of text, as plain PDF."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    kids = []
    words = ["".join(chooser.choices("aeioulnrst", k=chooser.randint(2, 9))) for _ in range(3_000)]
    for _ in range(PAGES):
        lines = [" ".join(chooser.choices(words, k=11)) + "." for _ in range(LINES)]
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


def measured(folder: Path, workers: int, embedder: str) -> dict[str, float]:
    """Ingest the folder into a new home."""
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home), ingest_workers=workers, embedder=embedder)
        used = make_embedder(settings)
        if embedder != "none":
            used.embed_query("warm up")
        began = time.perf_counter()
        report = asyncio.run(ingest([folder], settings=settings, embedder=used))
        seconds = time.perf_counter() - began
    spent = sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    return {"seconds": seconds, "passages": report.passages, "processor": spent}


def compare(folder: Path, workers: int, rounds: int, embedder: str) -> None:
    """Print seconds, processor seconds, ratio and serial part."""
    seconds, spent, passages = {1: 0.0, workers: 0.0}, {1: 0.0, workers: 0.0}, 0.0
    for turn in range(rounds):
        for count in (1, workers) if turn % 2 == 0 else (workers, 1):
            found = in_own_process(measured, folder, count, embedder)
            seconds[count] += found["seconds"]
            spent[count] += found["processor"]
            passages = found["passages"]
    ratio = seconds[1] / seconds[workers]
    for count, total in seconds.items():
        rate, processors = passages * rounds / total, spent[count] / total
        print(f"{count} readers: {total / rounds:.1f} s, {rate:.0f} passages/s, {processors:.2f} processors")
    serial = min(1.0, max(0.0, (1 / ratio - 1 / workers) / (1 - 1 / workers)))
    print(f"ratio {ratio:.2f}; serial part {serial:.2f}")
    for processors in (8, 64):
        print(f"{processors} readers by Amdahl's law: {1 / (serial + (1 - serial) / processors):.1f}")


def main() -> None:
    """Make the files and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=24)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--embedder", default="none")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for at in range(options.files):
            write_pdf(Path(folder) / f"{at:03}.pdf", random.Random(at))
        compare(Path(folder), options.workers, options.rounds, options.embedder)


if __name__ == "__main__":
    main()
