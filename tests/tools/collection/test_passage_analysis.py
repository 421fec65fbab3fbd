"""Passages are analyzed in worker processes with the same results as in this process."""

from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from sleuth.tools.collection.index_set import PassageAnalyzer
from sleuth.tools.documents.parallel_reading import LocalWorkers
from sleuth.tools.text.language import find_terms
from sleuth.tools.text.names import find_names
from sleuth.tools.types import Passage

WORDS = "Ada Lovelace met Charles Babbage in London. Die Mühle steht am Bach in Köln und mahlt. 東京の水車小屋 "


def passages(count: int) -> list[Passage]:
    texts = [f"{WORDS * 20} Number {at}. [Mill](the-old_mill.md)" for at in range(count)]
    return [
        Passage(id=f"p{at}", document_id=f"mill-{at}.md", title=f"Mill {at}, old", text=text, start=0, end=len(text))
        for at, text in enumerate(texts)
    ]


def test_worker_processes_give_the_same_results() -> None:
    given, workers = passages(80), LocalWorkers(2)
    analyzer = PassageAnalyzer()
    try:
        analyzer.start(workers.submit_analysis, given)
        analyzer.start(workers.submit_analysis, [replace(each, text=f"{each.text} More.") for each in given])
        assert analyzer.terms(given) == find_terms(given)
        assert [each._replace(mentions=list(each.mentions)) for each in analyzer.names(given[7:40])] == [
            each._replace(mentions=list(each.mentions)) for each in find_names(given[7:40])
        ]
        analyzer.start(workers.submit_analysis, given, [("fr", "", None)[at % 3] for at in range(80)])
        found = [each.language for each in analyzer.terms(given)]
        assert [found[0], found[1], *found[2::3]] == ["fr", "en", *(each.language for each in find_terms(given[2::3]))]
    finally:
        workers.close()


class Failing(LocalWorkers):
    """Counts the calls of worker processes, which fail."""

    calls = 0

    def submit_analysis(self, given: dict[str, Any]) -> "Future[dict[str, Any]]":
        self.calls += 1
        done: Future[dict[str, Any]] = Future()
        done.set_result({})
        return done


@pytest.mark.parametrize(("count", "calls"), [(2, 0), (80, 3)])
def test_few_passages_and_those_of_a_failed_process_are_analyzed_here(count: int, calls: int) -> None:
    given, workers = passages(count), Failing(2)
    analyzer = PassageAnalyzer()
    analyzer.start(workers.submit_analysis, given)
    assert analyzer.terms([*given, *passages(count + 1)[count:]]) == find_terms(passages(count + 1))
    assert workers.calls == calls
    workers.close()
