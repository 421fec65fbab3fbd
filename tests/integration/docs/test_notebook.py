"""The notebook of the tutorial, executed in a Jupyter kernel against a model server with scripted replies."""

import asyncio
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from recording_proxy import proxying
from scripted_backend import Scripted
from test_examples import ROOT, script

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
