"""Runs over pages passed with the question, and over documents that match a filter: both are stored with the run."""

from dataclasses import replace

import pytest
from scenes import Chain, Replying, RunsFor, Shelf, ask, finish

from sleuth.graphs.core.context import Budget
from sleuth.graphs.runs.history import export_run, fork_run, list_checkpoints
from sleuth.graphs.runs.pruning import prune
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import ModelUnavailable, UsageError
from sleuth.tools.web_pages.page import PageText


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
    answer = await ask(runs, chain.question, values=BY_WORDS, pages=pages)
    assert (answer.status, answer.text) == ("answered", chain.answer)
    assert {citation["document"] for citation in answer.citations} <= {page.id for page in pages}
    assert answer.citations
    for citation in answer.citations:
        text = next(page.text for page in pages if page.id == citation["document"])
        assert text[citation["start"] : citation["end"]] == citation["quote"]
    assert answer.warnings[: len(pages)] == [page.warnings[0] for page in pages]
    assert runs.services and runs.services.retriever.asked() == []  # type: ignore[attr-defined]


WHERE = "tag=contract date>=2025"
BY_WORDS = {"coarse_mode": "keyword", "fine_mode": "keyword"}


def filters(runs: RunService) -> list[str]:
    """Return the filter of every query so far."""
    assert runs.services
    shelf = runs.services.retriever
    assert isinstance(shelf, Shelf)
    return [query.where for query in shelf.queries]


async def test_pages_and_collection_are_searched_together(
    runs_with: RunsFor, chain: Chain, model: Replying, pages: list[PageText]
) -> None:
    runs = runs_with(model)
    await ask(runs, chain.question, "plain-rag", pages=pages, with_collection=True)
    assert runs.services and len(runs.services.retriever.asked()) == 1  # type: ignore[attr-defined]


async def test_interrupted_run_keeps_its_pages_and_filter(
    runs_with: RunsFor, chain: Chain, model: Replying, pages: list[PageText]
) -> None:
    def failing(_: object) -> ModelUnavailable:
        return ModelUnavailable("The server is down: start it.")

    stopped = runs_with(Replying(failing))
    given = {"values": BY_WORDS, "pages": pages, "with_collection": True, "where": WHERE}
    id = await stopped.start(RunRequest(question=chain.question, method="par-rag", **given))
    with pytest.raises(ModelUnavailable):
        await finish(stopped, id)
    await prune(stopped, older_than=None, keep_last=1)
    answer = await finish(runs := runs_with(model), id)
    assert (answer.status, answer.text) == ("answered", chain.answer)
    assert set(filters(runs)) == {WHERE}


async def test_queued_run_keeps_its_pages_after_a_prune(runs: RunService, chain: Chain, pages: list[PageText]) -> None:
    id = await runs.start(RunRequest(question=chain.question, method="plain-rag", pages=pages))
    assert (await prune(runs, older_than=None, keep_last=1)).texts == 0
    assert (await finish(runs, id)).status == "answered"


async def test_fork_into_another_method_and_export_keep_what_a_run_was_given(
    runs: RunService, chain: Chain, pages: list[PageText]
) -> None:
    given = {"pages": pages, "where": WHERE, "budget": Budget(max_calls=40)}
    id = (await ask(runs, chain.question, "plain-rag", **given)).thread
    exported = await export_run(runs, id)
    assert {page.to_json() for page in pages} <= set(exported["texts"].values())
    moments = await list_checkpoints(runs, id)
    forked = await fork_run(runs, id, at=moments[-1].checkpoint, into="par-rag")
    options, origin = [(await runs.store.threads.get(each)).options for each in (forked["thread"], id)]
    assert (options.pages, options.where, options.budget) == (origin.pages, WHERE, origin.budget)


async def test_pages_without_text_are_refused(runs: RunService, chain: Chain, pages: list[PageText]) -> None:
    empty = [replace(page, text="", sentences=()) for page in pages]
    with pytest.raises(UsageError, match="half of it was cut"):
        await runs.start(RunRequest(question=chain.question, method="plain-rag", pages=empty, thread="t"))
    assert not await runs.store.threads.exists("t")


@pytest.mark.parametrize("where", ["", f"  {WHERE} "])
@pytest.mark.parametrize("method", ["plain-rag", "par-rag", "auto"])
async def test_every_search_of_a_run_has_its_filter(runs: RunService, chain: Chain, method: str, where: str) -> None:
    await ask(runs, chain.question, method, where=where)
    assert set(filters(runs)) == {where.strip()}


async def test_unusable_filter_is_refused_before_the_run_is_stored(runs: RunService, chain: Chain) -> None:
    with pytest.raises(UsageError, match="FIELD=VALUE"):
        await runs.start(RunRequest(question=chain.question, method="plain-rag", where="contract", thread="t"))
    assert not await runs.store.threads.exists("t")
