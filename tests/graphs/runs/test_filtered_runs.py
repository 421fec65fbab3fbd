"""Runs over the documents that match a filter: it is stored with the run and applies to every search of it."""

import pytest
from scenes import Chain, Replying, RunsFor, Shelf, finish

from sleuth.graphs.runs.history import fork_run, list_checkpoints
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import ModelUnavailable, UnknownName, UsageError

WHERE = "tag=contract date>=2025"


def filters(runs: RunService) -> list[str]:
    """Return the filter of every query so far."""
    assert runs.services
    shelf = runs.services.retriever
    assert isinstance(shelf, Shelf)
    return [query.where for query in shelf.queries]


@pytest.mark.parametrize("method", ["plain-rag", "par-rag", "auto"])
async def test_every_search_of_a_run_has_its_filter(
    runs_with: RunsFor, chain: Chain, model: Replying, method: str
) -> None:
    runs = runs_with(model)
    await finish(runs, await runs.start(chain.question, method, where=f"  {WHERE} "))
    assert filters(runs)
    assert set(filters(runs)) == {WHERE}


async def test_interrupted_run_keeps_its_filter(runs_with: RunsFor, chain: Chain, model: Replying) -> None:
    stopped = runs_with(Replying(lambda _: ModelUnavailable("The server is down: start it.")))
    id = await stopped.start(chain.question, "par-rag", where=WHERE)
    with pytest.raises(ModelUnavailable):
        await finish(stopped, id)
    resumed = runs_with(model)
    await finish(resumed, id)
    assert set(filters(resumed)) == {WHERE}


async def test_fork_into_another_method_keeps_the_filter(runs: RunService, chain: Chain) -> None:
    id = await runs.start(chain.question, "plain-rag", where=WHERE)
    await finish(runs, id)
    at = (await list_checkpoints(runs, id))[-1].checkpoint
    forked = await fork_run(runs, id, at=at, into="par-rag")
    await finish(runs, forked["thread"])
    assert set(filters(runs)) == {WHERE}


async def test_run_without_a_filter_searches_all(runs: RunService, chain: Chain) -> None:
    await finish(runs, await runs.start(chain.question, "plain-rag"))
    assert set(filters(runs)) == {""}


async def test_unusable_filter_is_refused_before_the_run_is_stored(runs: RunService, chain: Chain) -> None:
    with pytest.raises(UsageError, match="FIELD=VALUE"):
        await runs.start(chain.question, "plain-rag", where="contract", thread="t")
    with pytest.raises(UnknownName, match="tag"):
        await runs.start(chain.question, "plain-rag", where="tags=contract", thread="t")
    assert not await runs.store.threads.exists("t")
