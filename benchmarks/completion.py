"""Time of shell completion, as a ratio to importing Typer, in turns of the same run.

    python -m benchmarks.completion [--rounds 20] [--runs 1000]

Completes a method, a search mode, a thread and a document, of many each. The shell starts a process for every
Tab, so interpreter and imports are included. Medians.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sleuth
from sleuth.graphs.persistence import Thread, open_store

WORDS = {
    "method": "sleuth ask --method pa",
    "search mode": "sleuth search --mode kno",
    "thread": "sleuth runs show run-9",
    "document": "sleuth docs show note-9",
}
TYPER = [sys.executable, "-c", "import typer"]
SLEUTH = [str(Path(sys.executable).with_name("sleuth"))]


async def fill(home: Path, count: int) -> None:
    settings = sleuth.Settings(home=home, embedder="none")
    notes = home / "notes"
    notes.mkdir(parents=True)
    for number in range(count):
        (notes / f"note-{number}.md").write_text(f"Note {number}.")
    await sleuth.ingest(notes, settings=settings)
    async with open_store(settings) as store:
        for number in range(count):
            thread = Thread(id=f"run-{number}", owner="local", method="plain-rag", question="?")
            await store.threads.add(thread)


def seconds(command: list[str], environment: dict[str, str]) -> tuple[float, str]:
    began = time.perf_counter()
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    return time.perf_counter() - began, done.stdout


def measure(home: Path, rounds: int) -> None:
    taken: dict[str, list[float]] = {name: [] for name in ("import typer", *WORDS)}
    for _ in range(rounds):
        taken["import typer"].append(seconds(TYPER, {})[0])
        for name, words in WORDS.items():
            line = {"_SLEUTH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
            took, shown = seconds(SLEUTH, line | {"SLEUTH_HOME": str(home), "_TYPER_COMPLETE_ARGS": words})
            assert words.split()[-1] in shown, f"{words!r} was completed to {shown!r}"
            taken[name].append(took)
    base = statistics.median(taken["import typer"])
    print(f"{'':14}{'seconds':>9}{'ratio':>7}")
    for name, all_ in taken.items():
        print(f"{name:14}{statistics.median(all_):9.3f}{statistics.median(all_) / base:7.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(fill(Path(folder) / "home", given.runs))
        measure(Path(folder) / "home", given.rounds)
