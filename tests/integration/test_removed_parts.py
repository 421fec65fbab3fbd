"""The core works without any of the parts in `parts.toml`, and says which one is missing."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks import parts

PARTS = parts.parts()

CORE = (
    "tests/agents/model_calls/test_caller.py",
    "tests/graphs/core/test_state.py",
    "tests/graphs/evidence/test_citations.py",
    "tests/graphs/methods/test_par_rag.py",
    "tests/tools/search/test_retriever.py",
    "tests/tools/storage/test_catalogue.py",
)
"""Tests of the core that take seconds and use no part."""

ROWS = {
    "hybrid-rag": '"hybrid-rag": "methods.hybrid_rag.graph",',
    "search-trained": '"search-trained": "methods.search_trained.graph",',
    "survey": 'SURVEY: "survey.graph", ',
    "report": ', REPORT: "report.graph"',
}
"""The rows of `graphs/registry.py` that are removed with a part."""


@dataclass(frozen=True, kw_only=True)
class Use:
    """A command that needs a part, and what it prints without it."""

    command: tuple[str, ...]
    message: str
    environment: Mapping[str, str] = field(default_factory=dict)


ASK = ("ask", "Where is the mill?", "--method", "reader")
USES = {
    "server": Use(command=("serve",), message="sleuth serve needs the part server"),
    "mcp": Use(command=("mcp",), message="sleuth mcp needs the part mcp"),
    "evaluation": Use(command=("eval", "q.jsonl"), message="sleuth eval needs the part evaluation"),
    "backup": Use(command=("backup", "b.zip"), message="sleuth backup needs the part backup"),
    "ray": Use(command=("ingest", "."), message="SLEUTH_RAY needs the part ray", environment={"SLEUTH_RAY": "local"}),
    "postgres": Use(
        command=("doctor",),
        message="SLEUTH_VECTORS=pgvector needs the part postgres",
        environment={"SLEUTH_VECTORS": "pgvector"},
    ),
    "survey": Use(command=("survey", "Where?"), message="sleuth survey needs the part survey"),
    "report": Use(command=("report", "Where?"), message="sleuth report needs the part report"),
    "hybrid-rag": Use(command=(*ASK, "--method", "hybrid-rag"), message="There is no method 'hybrid-rag'"),
    "formats": Use(command=("ingest", "table.xlsx"), message="needs the part formats"),
    "tracing": Use(
        command=ASK, message="SLEUTH_TRACING=otel needs the part tracing", environment={"SLEUTH_TRACING": "otel"}
    ),
    "triples": Use(command=("triples", "status"), message="sleuth triples needs the part triples"),
    "web-pages": Use(command=(*ASK, "--page", "p.html"), message="A question with web pages needs the part web-pages"),
    "model-server": Use(command=("model", "serve"), message="sleuth model needs the part model-server"),
    "sync": Use(command=("sync", "."), message="sleuth sync needs the part sync"),
    "duplicates": Use(command=("doctor", "--duplicates"), message="needs the part duplicates"),
    "search-trained": Use(command=(*ASK, "--method", "search-trained"), message="There is no method 'search-trained'"),
    "graph-model": Use(
        command=(*ASK, "--method", "ras", "--set", "graph_model=x"), message="needs the part graph-model"
    ),
}
"""How a person uses each part. LangGraph Studio and applications import `langgraph-dev` and `langchain` themselves."""


@dataclass(frozen=True)
class Copy:
    """A copy of the package without a part, and a home."""

    root: Path

    def run(self, *command: str, timeout: int = 300, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python with the copy instead of the package."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith("SLEUTH_")}
        return subprocess.run(
            [sys.executable, *command],
            env=variables | {"PYTHONPATH": str(self.root)} | environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def sleuth(self, *arguments: str, **environment: str) -> str:
        """Run a command in the folder of the documents; return all that it prints."""
        script = (
            f"import os, sys; os.chdir({str(self.root / 'documents')!r}); from sleuth.studio.cli import main; main()"
        )
        settings = {"SLEUTH_HOME": str(self.root / "home"), "SLEUTH_EMBEDDER": "none"}
        settings |= {"SLEUTH_MODEL_URL": "http://127.0.0.1:9/v1"}
        ran = self.run("-c", script, *arguments, **settings | environment)
        assert "Traceback" not in ran.stderr, ran.stderr
        return " ".join((ran.stdout + ran.stderr).split())


def copy_without(name: str, root: Path) -> Copy:
    """Copy the package as links to its files, without a part and its row in the registry."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *parts.PRODUCT], cwd=parts.ROOT, capture_output=True, check=True, text=True
    ).stdout
    for path in filter(None, listed.split("\0")):
        place = Path(path).relative_to("src/sleuth") if path.startswith("src/") else Path(path)
        if (parts.ROOT / path).is_file() and "web/src" not in path and not (parts.ROOT / path).is_symlink():
            (root / "sleuth" / place).parent.mkdir(parents=True, exist_ok=True)
            (root / "sleuth" / place).symlink_to(parts.ROOT / path)
    for module in PARTS[name].modules:
        place = root / "sleuth" / module.replace(".", "/")
        shutil.rmtree(place) if place.is_dir() else place.with_suffix(".py").unlink()
    if name in ROWS:
        registry = root / "sleuth" / "graphs" / "registry.py"
        source = registry.read_text()
        assert ROWS[name] in source
        registry.unlink()
        registry.write_text(source.replace(ROWS[name], ""))
    return Copy(root)


@pytest.mark.nightly
@pytest.mark.parametrize("name", PARTS)
def test_core_works_without_a_part(name: str, tmp_path: Path) -> None:
    copy = copy_without(name, tmp_path)
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "mill.txt").write_text("The mill stands in Varn. It was built in 1868.")
    assert "1 added" in copy.sleuth("ingest", "mill.txt")
    assert "Varn" in copy.sleuth(*ASK)
    (tmp_path / "documents" / "table.xlsx").write_bytes(b"PK")
    if use := USES.get(name):
        assert use.message in copy.sleuth(*use.command, **use.environment)
    ran = copy.run("-m", "pytest", "-q", "-x", "-p", "no:langsmith_plugin", "-p", "no:schemathesis", *CORE)
    assert ran.returncode == 0, ran.stdout


def test_every_part_is_used_or_imported_by_applications() -> None:
    assert PARTS.keys() - USES.keys() == {"langgraph-dev", "langchain"}
