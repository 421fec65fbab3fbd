"""Passages are analyzed in worker processes with the same results as in this process."""

from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from sleuth.tools.collection.passage_analysis import PassageAnalyzer, Workers, analyze
from sleuth.tools.documents.loading import FileReader
from sleuth.tools.documents.parallel_reading import LocalWorkers
from sleuth.tools.documents.worker import WorkerError
from sleuth.tools.text.names import find_names
from sleuth.tools.text.stemming import find_terms
from sleuth.tools.types import Passage

WORDS = "Ada Lovelace met Charles Babbage in London. Die Mühle steht am Bach in Köln und mahlt. 東京の水車小屋 "


class Calls(LocalWorkers):
    """Counts the calls of worker processes; `is_broken`: they fail."""

    def __init__(self, *, is_broken: bool = False) -> None:
        super().__init__(FileReader, 2)
        self.calls = 0
        self.is_broken = is_broken

    def submit_analysis(self, given: dict[str, Any]) -> "Future[dict[str, Any]]":
        self.calls += 1
        done: Future[dict[str, Any]] = Future()
        if self.is_broken:
            done.set_exception(WorkerError("takes more than 9 MB to read", "Split it."))
        else:
            done.set_result(analyze(given))
        return done


def passages(count: int) -> list[Passage]:
    texts = [f"{WORDS * 20} Number {at}. [Mill](the-old_mill.md)" for at in range(count)]
    return [
        Passage(id=f"p{at}", document_id=f"mill-{at}.md", title=f"Mill {at}, old", text=text, start=0, end=len(text))
        for at, text in enumerate(texts)
    ]


def test_worker_processes_give_the_same_results() -> None:
    given = passages(80)
    workers: Workers = LocalWorkers(FileReader, 2)
    analyzer = parallel(workers)
    try:
        assert analyzer.terms(given) == find_terms(given)
        assert [each._replace(mentions=list(each.mentions)) for each in analyzer.names(given)] == [
            each._replace(mentions=list(each.mentions)) for each in find_names(given)
        ]
    finally:
        workers.close()


def parallel(workers: Workers) -> PassageAnalyzer:
    analyzer = PassageAnalyzer(workers)
    analyzer.is_parallel = True
    return analyzer


def test_few_passages_and_those_after_a_stop_are_analyzed_in_this_process() -> None:
    workers = Calls()
    analyzer = parallel(workers)
    analyzer.terms(passages(2))
    analyzer.names(passages(2))
    analyzer.is_parallel = False
    assert analyzer.terms(passages(80)) == find_terms(passages(80))
    assert workers.calls == 0


@pytest.mark.parametrize("is_broken", [False, True])
@pytest.mark.parametrize("is_started", [False, True])
def test_failed_process_loses_no_result(is_broken: bool, is_started: bool) -> None:
    given, workers = passages(80), Calls(is_broken=is_broken)
    analyzer = parallel(workers)
    if is_started:
        analyzer.start(given)
    assert analyzer.terms(given) == find_terms(given)
    assert workers.calls == (6 if is_started else 3)


def test_started_analysis_of_two_batches_is_not_repeated() -> None:
    given, later, workers = passages(80), passages(90)[80:], Calls()
    analyzer = parallel(workers)
    analyzer.start(given)
    analyzer.start(later * 10)
    assert workers.calls == 2 * 3 + 2 * 4
    assert analyzer.terms([*given[40:], *later]) == find_terms([*given[40:], *later])
    assert analyzer.names(given[:2])[0].aliases == find_names(given[:1])[0].aliases
    assert workers.calls == 2 * 3 + 2 * 4
    analyzer.start([replace(each, text=f"{each.text} More.") for each in given])
    assert analyzer.terms(given) == find_terms(given)
    assert workers.calls == 2 * 3 + 2 * 4 + 2 * 3 + 3


def test_known_language_of_a_passage_is_not_detected_again() -> None:
    given = passages(80)
    analyzer = parallel(Calls())
    analyzer.start(given, [("fr", "", None)[at % 3] for at in range(80)])
    found = [each.language for each in analyzer.terms(given)]
    assert found[:2] == ["fr", "en"]
    assert found[2::3] == [each.language for each in find_terms(given[2::3])]
