"""A fork of any checkpoint of any method into any other one runs, and what was found out is not looked up again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations

import pytest
from everyone import AT_ONCE, Everyone, finds
from hashing_embedder import HashingEmbedder
from retro_scenes import Judging
from scenes import Chain, Replying, Shelf, example, finish

from sleuth.graphs.answer import Note
from sleuth.graphs.history import fork, history
from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs import Runs, Services
from sleuth.graphs.state import Budget
from sleuth.graphs.store import Store
from sleuth.tools.text import words

PLAYED = [name for name in METHODS if name not in ("auto", "closed-book")]
"""Hops of `auto` are runs of their own; closed-book finds nothing out (test_closed_book.py forks into it)."""


@dataclass
class Table:
    """A store of runs over a chain, in which everybody knows their part; `asks` and `searches` are those of a run."""

    store: Store
    chain: Chain
    model: Replying = field(init=False)
    shelf: Shelf = field(init=False)

    def runs(self, method: str) -> Runs:
        """With a model and a shelf that nobody has asked yet, and no triples; what searches once finds all."""
        self.model = Judging(Everyone(self.chain).reply_to)
        self.shelf = finds(self.chain, at_once=method in AT_ONCE)
        services = Services(model=self.model, retriever=self.shelf, embedder=HashingEmbedder())
        return Runs(self.store, services)

    async def play(self, method: str) -> str:
        """A run from scratch; its thread."""
        runs = self.runs(method)
        id = await runs.start(self.chain.question, method)
        await finish(runs, id)
        return id


def covers(notes: Sequence[Note], chain: Chain) -> bool:
    """Whether notes answer every hop, or the question itself."""
    if any(words(each["question"]) == words(chain.question) and each["finding"] for each in notes):
        return True
    return all(any(hop.answer in each["finding"] for each in notes) for hop in chain.hops)


@pytest.fixture
def table(store: Store) -> Table:
    return Table(store, example("q08"))


@pytest.mark.parametrize("method", PLAYED)
@pytest.mark.sweep
async def test_every_state_that_a_run_has_been_in_can_be_given_to_a_fork(table: Table, method: str) -> None:
    id, runs = await table.play(method), table.runs(method)
    thread = await runs.store.threads.get(id)
    for moment in (await history(runs, id))[:-2]:  # before the first node a fork takes the question and notes alone
        values = (await runs.graph(thread).aget_state(runs.config(thread, moment.checkpoint))).values
        await fork(runs, id, at=moment.checkpoint, changes=values)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sweep
async def test_every_method_goes_on_with_another_budget(table: Table, method: str) -> None:
    whole = await (runs := table.runs(method)).answer(await table.play(method))
    ended = 0
    for most in range(len(table.model.requests)):
        runs = table.runs(method)
        id = await runs.start(table.chain.question, method, budget=Budget(max_calls=most))
        ended += (await finish(runs, id)).status == "out_of_budget"
        answer = await finish(runs, id, budget=Budget())
        if answer.status == "answered":
            assert answer.text == whole.text
        assert answer.status != "out_of_budget"
    assert ended or not table.model.requests


@pytest.mark.parametrize(("method", "into"), permutations(PLAYED, 2))
@pytest.mark.sweep
async def test_a_fork_of_any_checkpoint_into_any_other_method_goes_on_from_what_is_known(
    table: Table, method: str, into: str
) -> None:
    await table.play(into)
    needed = len(table.model.requests)
    id = await table.play(method)
    covered = 0
    for moment in await history(table.runs(method), id):
        runs = table.runs(into)
        thread = (await fork(runs, id, at=moment.checkpoint, into=into))["thread"]
        forked = await runs.store.threads.get(thread)
        notes = list((await runs.graph(forked).aget_state(runs.config(forked))).values["notes"].values())
        answer = await finish(runs, thread)
        assert (answer.method, answer.status, answer.text) == (into, "answered", table.chain.answer)
        known = {words(each["question"]) for each in notes if each["finding"]}
        assert not known & {words(query.text) for query in table.shelf.queries}, "what is known was looked up"
        if covers(notes, table.chain):
            covered += 1
            assert table.shelf.queries == []
            assert len(table.model.requests) < needed or len(table.model.requests) == 1, "one call is the least"
    assert covered
