"""Runs over pages passed with the question: they are stored with the run and found when it resumes."""

from dataclasses import replace

import pytest
from scenes import Chain, Replying, RunsFor, finish

from sleuth.graphs.runs.history import export_run, fork_run, list_checkpoints
from sleuth.graphs.runs.pruning import prune
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import ModelUnavailable, UsageError
from sleuth.tools.sources.web_pages.page import PageText


@pytest.fixture
def pages(chain: Chain) -> list[PageText]:
    """A page for each passage of the chain."""
    return [
        PageText(
            id=f"https://a.example/{at}",
            name=passage.title,
            text=passage.text,
            sentences=((0, len(passage.text)),),
            warnings=(f"{passage.title}: half of it was cut",),
        )
        for at, passage in enumerate(chain.passages)
    ]


async def test_run_with_pages_skips_the_collection(
    runs_with: RunsFor, chain: Chain, model: Replying, pages: list[PageText]
) -> None:
    runs = runs_with(model)
    answer = await finish(runs, await runs.start(chain.question, "par-rag", values=BY_WORDS, pages=pages))
    assert (answer.status, answer.text) == ("answered", chain.answer)
    assert {citation["document"] for citation in answer.citations} <= {page.id for page in pages}
    assert answer.citations
    for citation in answer.citations:
        text = next(page.text for page in pages if page.id == citation["document"])
        assert text[citation["start"] : citation["end"]] == citation["quote"]
    assert answer.warnings[: len(pages)] == [page.warnings[0] for page in pages]
    assert runs.services and runs.services.retriever.asked() == []  # type: ignore[attr-defined]


BY_WORDS = {"coarse_mode": "keyword", "fine_mode": "keyword"}


async def test_pages_and_collection_are_searched_together(
    runs_with: RunsFor, chain: Chain, model: Replying, pages: list[PageText]
) -> None:
    runs = runs_with(model)
    await finish(runs, await runs.start(chain.question, "plain-rag", pages=pages, with_collection=True))
    assert runs.services and len(runs.services.retriever.asked()) == 1  # type: ignore[attr-defined]


async def test_interrupted_run_keeps_its_pages(
    runs_with: RunsFor, chain: Chain, model: Replying, pages: list[PageText]
) -> None:
    def failing(_: object) -> ModelUnavailable:
        return ModelUnavailable("The server is down: start it.")

    stopped = runs_with(Replying(failing))
    id = await stopped.start(chain.question, "plain-rag", pages=pages)
    with pytest.raises(ModelUnavailable):
        await finish(stopped, id)
    await prune(stopped, older_than=None, keep_last=1)
    answer = await finish(runs_with(model), id)
    assert (answer.status, answer.text) == ("answered", chain.answer)


async def test_queued_run_keeps_its_pages_after_a_prune(runs: RunService, chain: Chain, pages: list[PageText]) -> None:
    id = await runs.start(chain.question, "plain-rag", pages=pages)
    assert (await prune(runs, older_than=None, keep_last=1)).texts == 0
    assert (await finish(runs, id)).status == "answered"


async def test_fork_into_another_method_and_export_keep_pages(
    runs: RunService, chain: Chain, pages: list[PageText]
) -> None:
    id = await runs.start(chain.question, "plain-rag", pages=pages)
    await finish(runs, id)
    exported = await export_run(runs, id)
    assert {page.to_json() for page in pages} <= set(exported["texts"].values())
    moments = await list_checkpoints(runs, id)
    forked = await fork_run(runs, id, at=moments[-1].checkpoint, into="par-rag")
    thread = await runs.store.threads.get(forked["thread"])
    assert thread.options.pages == (await runs.store.threads.get(id)).options.pages


async def test_pages_without_text_are_refused(runs: RunService, chain: Chain, pages: list[PageText]) -> None:
    empty = [replace(page, text="", sentences=()) for page in pages]
    with pytest.raises(UsageError, match="half of it was cut"):
        await runs.start(chain.question, "plain-rag", pages=empty, thread="t")
    assert not await runs.store.threads.exists("t")
