"""Processor time of short commands, compared with `import langgraph.graph`.

    python -m benchmarks.startup [--rounds 5] [--sources FOLDER...] [--json FILE]

A home with 40 documents of examples/corpus and one answered run is made with a mock model server. Then `search`, `runs
show`, an `ingest` without changes and a script that calls `sleuth.ask` once are run in processes of their own, in turns
with the import. Prints the medians in seconds of processor time, and as ratios to the import, which other work on the
machine changes less. With several clones as `--sources`, each is measured in every round.
"""

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from benchmarks.harness import EXAMPLES, write_json
from benchmarks.servers import USAGE, completion, free_port, model_routes, serve_app, serving, wait_until_up

DOCUMENTS = 40
QUESTION = "Who built the lighthouse?"
REPLY = '{"answerable": true, "answer": "Ada Lund", "citations": []}'
COMMAND = "import sys; from sleuth.studio.cli import main; main()"
ASK = f"import asyncio, sleuth; asyncio.run(sleuth.ask({QUESTION!r}, method='plain-rag'))"
IMPORT = "import langgraph.graph"


def serve(port: int) -> None:
    """Run the mock server."""

    async def complete(_request: Request) -> Response:
        return JSONResponse(completion({"message": {"role": "assistant", "content": REPLY}}) | {"usage": USAGE})

    serve_app(Starlette(routes=[*model_routes(), Route("/v1/chat/completions", complete, methods=["POST"])]), port)


def processor_seconds(source: Path, home: Path, port: int, *arguments: str) -> float:
    """Run Python with a clone's packages; return its seconds of processor time."""
    variables = {"PYTHONPATH": str(source / "src"), "SLEUTH_HOME": str(home)}
    url = {"SLEUTH_MODEL_URL": f"http://127.0.0.1:{port}/v1"}
    child = subprocess.Popen(
        [sys.executable, "-c", *arguments], env=os.environ | variables | url, cwd=home, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{arguments[1:] or arguments} failed with {child.returncode}")
    seconds = used.ru_utime + used.ru_stime
    print(f"{seconds:.2f} s  {source.name}: {' '.join(arguments[1:] or arguments)}", file=sys.stderr)
    return seconds


def measure(sources: list[Path], rounds: int, folder: Path, port: int) -> dict[str, list[float]]:
    """Return the processor times of all rounds, by command."""
    documents = folder / "documents"
    documents.mkdir()
    for file in sorted((EXAMPLES / "corpus").iterdir())[:DOCUMENTS]:
        (documents / file.name).symlink_to(file)
    commands = {
        "search": (COMMAND, "search", QUESTION),
        "runs show": (COMMAND, "runs", "show", "first"),
        "ingest": (COMMAND, "ingest", str(documents)),
        "sleuth.ask": (ASK,),
    }
    for number, source in enumerate(sources):
        home = folder / f"home{number}"
        home.mkdir()
        processor_seconds(source, home, port, *commands["ingest"])
        processor_seconds(source, home, port, COMMAND, "ask", QUESTION, "--method", "plain-rag", "--thread", "first")
    taken: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        taken[IMPORT].append(processor_seconds(sources[0], folder, port, IMPORT))
        for name, command in commands.items():
            for number, source in enumerate(sources):
                seconds = processor_seconds(source, folder / f"home{number}", port, *command)
                taken[f"{name} ({source.name})" if len(sources) > 1 else name].append(seconds)
    return taken


def main(
    rounds: Annotated[int, typer.Option(help="Repetitions of each command.")] = 5,
    sources: Annotated[list[Path] | None, typer.Option(help="Clones to measure; this one by default.")] = None,
    json: Annotated[Path | None, typer.Option(help="File for the medians.")] = None,
) -> None:
    """Measure, and print a line per command."""
    port = free_port()
    with serving(serve, port), tempfile.TemporaryDirectory(prefix="sleuth-startup-") as folder:
        wait_until_up(f"http://127.0.0.1:{port}/v1/models")
        taken = measure(sources or [EXAMPLES.parent], rounds, Path(folder), port)
    medians: dict[str, Any] = {name: round(median(seconds), 2) for name, seconds in taken.items()}
    for name, seconds in medians.items():
        print(f"{name:40} {seconds:6.2f} s  {seconds / medians[IMPORT]:5.2f}")
    if json:
        write_json(json, medians)


if __name__ == "__main__":
    typer.run(main)
