"""Runs over pages that came with the question: they are kept with the run, and found again wherever it goes on."""

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


async def test_a_run_reads_its_pages_and_not_the_collection(
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


async def test_beside_the_collection_both_are_searched(
    runs_with: RunsFor, chain: Chain, model: Replying, pages: list[PageText]
) -> None:
    runs = runs_with(model)
    await finish(runs, await runs.start(chain.question, "plain-rag", pages=pages, beside=True))
    assert runs.services and len(runs.services.retriever.asked()) == 1  # type: ignore[attr-defined]


async def test_what_stops_a_run_does_not_lose_its_pages(
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


async def test_a_run_that_has_not_begun_keeps_its_pages_when_others_are_pruned(
    runs: RunService, chain: Chain, pages: list[PageText]
) -> None:
    id = await runs.start(chain.question, "plain-rag", pages=pages)
    assert (await prune(runs, older_than=None, keep_last=1)).texts == 0
    assert (await finish(runs, id)).status == "answered"


async def test_a_fork_into_another_method_and_an_export_have_the_pages(
    runs: RunService, chain: Chain, pages: list[PageText]
) -> None:
    id = await runs.start(chain.question, "plain-rag", pages=pages)
    await finish(runs, id)
    exported = await export_run(runs, id)
    assert {page.to_json() for page in pages} <= set(exported["texts"].values())
    moments = await list_checkpoints(runs, id)
    forked = await fork_run(runs, id, at=moments[-1].checkpoint, into="par-rag")
    thread = await runs.store.threads.get(forked["thread"])
    assert thread.options["pages"] == (await runs.store.threads.get(id)).options["pages"]


async def test_pages_without_any_text_are_refused(runs: RunService, chain: Chain, pages: list[PageText]) -> None:
    empty = [replace(page, text="", sentences=()) for page in pages]
    with pytest.raises(UsageError, match="half of it was cut"):
        await runs.start(chain.question, "plain-rag", pages=empty, thread="t")
    assert not await runs.store.threads.exists("t")
