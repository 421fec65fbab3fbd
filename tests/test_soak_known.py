"""Comparisons of benchmarks/soak/known.py: each difference from the acknowledged state is reported, nothing else."""

import asyncio
from typing import Any

import httpx
import pytest

from benchmarks.soak import known as soak


class Server:
    """Documents by name, as `sleuth serve` lists them; a search finds each that has the text."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self.found = dict(texts)

    async def call(self, _method: str, path: str, params: dict[str, Any] | None = None) -> httpx.Response:
        if params:
            hits = [{"document": f"id of {name}"} for name, text in self.found.items() if text == params["q"]]
            return httpx.Response(200, json=hits)
        _, _, id_ = path.partition("/documents/")
        if id_:
            return httpx.Response(200, json={"text": self.texts[id_.removeprefix("id of ")]})
        return httpx.Response(200, json=[{"id": f"id of {name}", "source": name} for name in self.texts])


def compared(server: Server) -> list[str]:
    known = soak.Known()
    with known.changing({"a": "one", "b": "two", "c": "three"}):
        pass
    with known.changing({"c": None}):
        pass
    _, wrong = asyncio.run(soak.documents(known, server.call, 5))
    assert isinstance(wrong, list)
    return wrong


def test_what_is_as_it_was_acknowledged_is_no_difference() -> None:
    assert compared(Server({"a": "one", "b": "two"})) == []


@pytest.mark.parametrize(
    ("there", "wrong"),
    [
        ({"a": "one"}, "b is gone"),
        ({"a": "one", "b": "another"}, "b is another text"),
        ({"a": "one", "b": "two", "c": "three"}, "c is back"),
        ({"a": "one", "b": "two", "d": "four"}, "d is back"),
    ],
)
def test_each_changed_document_is_reported(there: dict[str, str], wrong: str) -> None:
    assert compared(Server(there)) == [wrong]


def test_what_searches_find_is_what_is_there() -> None:
    server = Server({"a": "one", "b": "two"})
    server.found = {"a": "one", "c": "one"}
    assert compared(server) == [
        "keyword search finds id of c, which is gone",
        "dense search finds id of c, which is gone",
        "b is not found by keyword search",
        "b is not found by dense search",
    ]


def test_any_of_concurrent_changes_may_be_last_but_no_earlier_one() -> None:
    known = soak.Known()
    with known.changing({"a": "before"}):
        pass
    with known.changing({"a": "one"}):
        assert known.alone("a")
        with known.changing({"a": None}):
            assert not known.alone("a")
    for left in ({"a": "one"}, {}):
        with known.changing({"a": "one"}), known.changing({"a": None}):
            pass
        assert known.texts(left) == []
    with known.changing({"a": "one"}), known.changing({"a": "two"}):
        pass
    assert known.texts({"a": "before"}) == ["a is another text"]


def test_runs_are_listed_unless_they_were_removed_or_pruned() -> None:
    known = soak.Known()
    rows = [{"id": name, "status": "done"} for name in "abc"]
    known.runs = dict.fromkeys("abc")
    assert soak.runs(known, rows, 0) == []
    assert soak.runs(known, rows[:2], 1) == []
    assert soak.runs(known, rows[:1], 0) == ["1 runs are gone, and 0 were pruned"]
    assert soak.runs(known, rows[:2], 0) == ["run b was removed, and is listed"]
    known.runs = {"a": None}
    assert soak.runs(known, [{"id": "a", "status": "failed"}], 0) == ["run a is failed"]
