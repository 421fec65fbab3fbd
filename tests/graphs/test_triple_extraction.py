"""Extraction of triples ahead of time: stored per passage, resumed, and within its budget."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from entries import entry
from scenes import Replying

from sleuth.agents.model import Request
from sleuth.graphs.core.context import Budget
from sleuth.graphs.methods.ras.triple_graph import prompt_version
from sleuth.graphs.triple_extraction import BATCH, Extraction, ExtractionReport
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import open_engine

MANY = BATCH + 6


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    opened = Catalogue(open_engine(f"sqlite:///{tmp_path}/catalogue.db"), owner="local", collection="default")
    opened.put_documents([entry(f"d{at}", f"Oda {at} was born in Varn.", title=f"Oda {at}") for at in range(MANY)])
    yield opened
    opened.close()


def born(request: Request) -> Any:
    name = request.input["sources"][0]["title"]
    return {"triples": [{"subject": name, "predicate": "born in", "object": "Varn"}]}


def extraction(
    catalogue: Catalogue, answer: Callable[[Request], Any], *, concurrency: int = 4, **budget: float
) -> Extraction:
    return Extraction(
        model=Replying(answer),
        store=catalogue.triples(model="small"),
        on_read=lambda _report: None,
        budget=Budget(**budget),  # type: ignore[arg-type]
        concurrency=concurrency,
    )


async def test_all_passages_are_read_once_with_progress(catalogue: Catalogue) -> None:
    told: list[ExtractionReport] = []
    done = await replace(extraction(catalogue, born), on_read=told.append).run()
    assert (done.read, done.triples, done.calls, done.failed) == (MANY, MANY, MANY, 0)
    assert sum(update.read for update in told) == MANY
    (summary,) = catalogue.triples().summary()
    assert (summary.model, summary.passages, summary.triples) == ("small", MANY, MANY)
    assert (await extraction(catalogue, born).run()).calls == 0


async def test_triples_found_before_a_failure_are_kept(catalogue: Catalogue) -> None:
    answered: list[str] = []

    def breaks_down(request: Request) -> Any:
        if len(answered) == 10:
            return ModelUnavailable("The server is gone.")
        answered.append(request.input["sources"][0]["title"])
        return born(request)

    with pytest.raises(ModelUnavailable):
        await extraction(catalogue, breaks_down, concurrency=1).run()
    assert len(answered) == 10
    again = extraction(catalogue, born)
    assert (await again.run()).read == MANY - 10
    assert isinstance(again.model, Replying)
    asked = {request.input["sources"][0]["title"] for request in again.model.requests}
    assert asked.isdisjoint(answered)
    assert len(asked) == MANY - 10


async def test_failed_extraction_is_retried_by_the_next_call(catalogue: Catalogue) -> None:
    def mumbles(request: Request) -> Any:
        return "No idea." if request.input["sources"][0]["title"] == "Oda 3" else born(request)

    done = await extraction(catalogue, mumbles).run()
    assert (done.read, done.failed, len(done.warnings)) == (MANY - 1, 1, 1)
    assert (await extraction(catalogue, born).run()).read == 1


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("most", [1, 7])
async def test_extraction_stays_within_max_calls(catalogue: Catalogue, most: int, concurrency: int) -> None:
    given = extraction(catalogue, lambda _: "No idea.", max_calls=most, concurrency=concurrency)
    done = await given.run()
    assert isinstance(given.model, Replying)
    assert done.calls == len(given.model.requests) <= most
    assert (await extraction(catalogue, born, max_calls=most, concurrency=concurrency).run()).read == most


async def test_extraction_stays_within_tokens_and_seconds(catalogue: Catalogue) -> None:
    assert 0 < (await extraction(catalogue, born, max_tokens=200, concurrency=1).run()).read < MANY
    assert (await extraction(catalogue, born, max_seconds=0.0).run()).read == 0


async def test_extraction_stays_within_concurrency(catalogue: Catalogue) -> None:
    busy, most = 0, 0

    class Slow(Replying):
        async def call(self, request: Request) -> Any:
            nonlocal busy, most
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(0)
            busy -= 1
            return await super().call(request)

    await replace(extraction(catalogue, born, concurrency=3), model=Slow(born)).run()
    assert most == 3


async def test_passages_read_by_ras_are_not_read_again(catalogue: Catalogue) -> None:
    (passage,) = catalogue.triples(model="small").unread(version=await prompt_version(), after="", limit=1)
    await catalogue.triples(model="small").put({passage.fingerprint(): []}, version=await prompt_version())
    assert (await extraction(catalogue, born).run()).read == MANY - 1
    assert json.dumps(catalogue.triples().all()[passage.id]) == "[]"
