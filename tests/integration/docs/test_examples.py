"""The runnable examples of the documentation: every block below a line `<!-- runnable -->`, page by page, in order.

The blocks of a page share a folder, a home, and a model server with scripted replies. The home has the example corpus,
unless the page ingests documents itself. `~/Documents/notes` is a folder with some articles of the corpus, and
`127.0.0.1:8100` a `sleuth serve` on a free port.
"""

import asyncio
import os
import re
import shutil
import sys
from asyncio.subprocess import PIPE, STDOUT
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from scripted_backend import Asked, Scripted, proxying
from serve_process import sleuth_serve

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^( *)<!-- runnable -->\n+ *```(bash|python)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SERVER = "127.0.0.1:8100"

PLAN = [
    {"question": "Who built the Pellowrig Light?", "needs": []},
    {"question": "Where was the builder born?", "needs": [1]},
]
BORN = {"source": 1, "quote": "He came from Sennick Harbour, where he was born above the kelp stores"}
BUILT = {"source": 1, "quote": "It was built by Bastian Oake"}
REPLIES: dict[str, Any] = {
    "planner/plan": PLAN,
    "planner/plan_in_order": PLAN,
    "reviewer/review": {"status": "PASS"},
    "evaluator/support": "yes",
    "answerer/answer": {"known": True, "answer": "Sennick Harbour"},
    "rewriter/rewrite": {"question": "Where was the builder of the Pellowrig Light born?"},
    "router/route": "question",
    "host/reply": {"needs_search": False, "reply": "hello"},
}


def script(asked: Asked) -> Any:
    """Answer the questions of the examples: who built the light, and where its builder was born."""
    if asked.prompt == "refiner/refine":
        return {"question": f"Where was {'Anselm Ruske' if 'Anselm Ruske' in asked.text else 'Bastian Oake'} born?"}
    if asked.prompt == "answerer/answer" and "Brindlecote" in asked.text:
        return {"known": True, "answer": "Brindlecote"}
    if asked.prompt not in ("drafter/draft", "reader/read"):
        return REPLIES[asked.prompt]
    if "Anselm Ruske" in asked.after("Question: "):
        return {"answer": "Brindlecote", "citations": [{"source": 1, "quote": "Ruske was born at Brindlecote"}]}
    born = "born" in asked.after("Question: ")
    answer, quote = ("Sennick Harbour", BORN) if born else ("Bastian Oake", BUILT)
    found = {"answer": answer, "citations": [quote]}
    return {"answerable": True, **found} if asked.prompt == "reader/read" else found


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the language and the code of each runnable block of a page."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(language, re.sub(f"^{indent}", "", code, flags=re.MULTILINE)) for indent, language, code in found]


PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if blocks(page)]


def test_every_marker_belongs_to_a_block() -> None:
    assert PAGES
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        markers = re.findall("^ *<!-- runnable -->$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(markers) == len(blocks(page)), page
        for language, code in blocks(page):
            if language == "python":
                compile(code, str(page), "exec")


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
async def test_examples_of_a_page_run(page: Path, home: Path, tmp_path: Path) -> None:
    for name in ("examples", "training"):
        (tmp_path / name).symlink_to(ROOT / name)
    notes = tmp_path / "Documents" / "notes"
    notes.mkdir(parents=True)
    for name in ("pellowrig-light.md", "bastian-oake.md", "sennick-harbour.md"):
        shutil.copy(ROOT / "examples" / "corpus" / name, notes)
    code = "\n".join(text for _, text in blocks(page))
    if "sleuth ingest" not in code:
        shutil.copytree(home, tmp_path / "home")
    async with proxying(Scripted(script)) as proxy:
        environment = settings(tmp_path, SLEUTH_HOME=str(tmp_path / "home"), SLEUTH_MODEL_URL=proxy.url)
        async with AsyncExitStack() as stack:
            address = SERVER
            if SERVER in code:
                served = await stack.enter_async_context(sleuth_serve(tmp_path, **environment))
                address = served.url.removeprefix("http://")
            printed = [
                await run(language, text.replace(SERVER, address), environment, tmp_path)
                for language, text in blocks(page)
            ]
    if page.name == "runs.md":
        (forked,) = (text for text in printed if "thread what-if" in text)
        assert "draft of step 2: Brindlecote" in forked
        assert "Sennick Harbour" not in forked


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the example corpus."""
    folder = tmp_path_factory.mktemp("documentation")
    environment = settings(folder, SLEUTH_HOME=str(folder / "home"))
    asyncio.run(run("bash", f"sleuth ingest {ROOT / 'examples' / 'corpus'}", environment, folder))
    return folder / "home"


def settings(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of an example."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "HOME": str(folder), "PATH": path, "SLEUTH_EMBEDDER": "none", **more}


async def run(language: str, code: str, environment: dict[str, str], folder: Path) -> str:
    """Run a block in a process of its own, and return what it printed."""
    command = ["bash", "-euo", "pipefail", "-c"] if language == "bash" else [sys.executable, "-c"]
    process = await asyncio.create_subprocess_exec(
        *command, code, env=environment, cwd=folder, stdout=PIPE, stderr=STDOUT, start_new_session=True
    )
    output, _ = await asyncio.wait_for(process.communicate(), 500)
    assert process.returncode == 0, f"{code}\n---\n{output.decode()}"
    return output.decode()


NOTEBOOK = ROOT / "examples" / "tutorial.ipynb"


@pytest.mark.nightly
async def test_notebook_runs_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    async with proxying(Scripted(script)) as proxy:
        settings = {"SLEUTH_HOME": str(tmp_path / "home"), "SLEUTH_MODEL_URL": proxy.url, "SLEUTH_EMBEDDER": "none"}
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        notebook = await asyncio.to_thread(nbformat.read, NOTEBOOK, as_version=4)
        client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
        await client.async_execute()
    printed = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []) if "text" in output
    )
    assert "documents\n" in printed
    assert "answered Sennick Harbour" in printed
    assert "bastian-oake.md 86 He came from Sennick Harbour" in printed
    assert "['plan'] ->" in printed
    assert "plain-rag answered Sennick Harbour" in printed


def test_notebook_is_stored_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in notebook.cells)
