from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from checker import TOKENIZER

from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker import Evidence, EvidenceChecker
from sleuth.tools.evidence_checker.checker import AnswerSpan, Floats, Ids, Reading, Run, SupportFit, Temperatures
from sleuth.tools.evidence_checker.inputs import Layout

LAYOUT = Layout(TOKENIZER)
FERRY = Evidence(title="Ferry", text="The ferry was built in 1911 by Oda Brask.")
RAIN = Evidence(title="Rain", text="Rain falls in Kestrow.")
WHOLE = [2.0, 3.0, 1.0, 0.0, 0.0, 1.0, 0.0]


def network(
    words: str, *, whole: Sequence[float] = WHOLE, relevant: str = "1911", shapes: list[tuple[int, ...]] | None = None
) -> Run:
    """A network that begins an answer at the first of some words, ends it at the last, and finds one word relevant."""
    first, *_, last = LAYOUT.question(words)[:1] + LAYOUT.question(words)
    (wanted,) = LAYOUT.question(relevant)

    def run(ids: Ids, mask: Ids, types: Ids) -> tuple[Floats, Floats]:
        if shapes is not None:
            shapes.append(ids.shape)
        assert mask.shape == ids.shape == types.shape
        tokens = np.zeros((*ids.shape, 3), dtype=np.float32)
        tokens[ids == first, 0] = tokens[ids == last, 1] = 8
        for row, line in enumerate(ids):
            closings = [at for at, token in enumerate(line) if token == 102]
            for begin, end in pairwise(closings):
                tokens[row, begin + 1 : end + 1, 2] = 3 if wanted in line[begin:end] else -3
        return tokens, np.tile(np.array(whole, dtype=np.float32), (len(ids), 1))

    return run


def test_best_span_is_found_with_its_characters() -> None:
    reading = EvidenceChecker(LAYOUT, network("Oda Brask")).read("Who built it?", [RAIN, FERRY])
    best, *others = reading.spans
    assert (best.passage, best.text) == (1, "Oda Brask")
    assert FERRY.text[best.start : best.end] == "Oda Brask"
    assert all(best.score > each.score for each in others)
    assert all(each.end <= best.start or each.start >= best.end for each in others if each.passage == 1)
    assert reading.answer == "Oda Brask"


@pytest.mark.parametrize("text", ["# Oda\n\nBrask\n\nA ferry.", "It was built by Oda. Brask lived there."])
def test_spans_do_not_cross_lines_and_sentences(text: str) -> None:
    reading = EvidenceChecker(LAYOUT, network("Oda Brask")).read("Who built it?", [Evidence(text=text)])
    assert reading.spans
    assert not any("Oda" in span.text and "Brask" in span.text for span in reading.spans)


def test_probabilities_follow_from_logits_and_temperatures() -> None:
    run = network("1911", whole=[2.0, 0.0, np.log(2), 0.0, np.log(4), 0.0, 0.0])
    reading = EvidenceChecker(LAYOUT, run).read("Was it built in 1911?", [FERRY])
    assert reading.answerable == pytest.approx(1 / (1 + np.exp(-2.0)))
    assert (reading.yes, reading.no) == (pytest.approx(0.5), pytest.approx(0.25))
    cooled = EvidenceChecker(LAYOUT, run, Temperatures(answerable=2.0, relation=2.0))
    assert cooled.read("Was it built in 1911?", [FERRY]).answerable == pytest.approx(1 / (1 + np.exp(-1.0)))
    support = cooled.check("It was built in 1911.", [FERRY])
    assert support.supported == pytest.approx(0.5)
    assert support.supported + support.contradicted + support.not_mentioned == pytest.approx(1)


@pytest.mark.parametrize(("kind", "answer"), [([0, 5, 0], "yes"), ([0, 0, 5], "no"), ([5, 0, 0], "1911")])
def test_answer_is_of_the_likeliest_kind(kind: list[float], answer: str) -> None:
    run = network("1911", whole=[0.0, *kind, 0.0, 0.0, 0.0])
    assert EvidenceChecker(LAYOUT, run).read("Was it?", [FERRY]).answer == answer


def test_relevant_passages_of_several_windows_are_read_together() -> None:
    filler = [Evidence(text=f"{word} " * 300) for word in ("river", "bridge", "stone", "rain")]
    shapes: list[tuple[int, ...]] = []
    checker = EvidenceChecker(LAYOUT, network("Oda Brask", shapes=shapes))
    reading = checker.read("Who built it?", [FERRY, *filler, FERRY])
    assert [relevance > 0.5 for relevance in reading.relevance] == [True, False, False, False, False, True]
    assert {span.passage for span in reading.spans if span.text == "Oda Brask"} == {0, 5}
    assert sum(rows for rows, _ in shapes) == 5


def test_nothing_is_answered_or_mentioned_without_passages() -> None:
    checker = EvidenceChecker(LAYOUT, network("Oda Brask"))
    reading = checker.read("Who built it?", [])
    assert (reading.answerable, reading.spans, reading.relevance) == (0.0, (), ())
    assert checker.check("It was built.", []).not_mentioned == 1.0


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        *(("Oda Brask", 0.425), ("brask", 0.425), ("the builder Oda Brask", 0.425), ("Kestrow", 0.10625)),
        *(("yes", 0.05), ("no", 0.0), ("Varn", 0.0), ("", 0.0)),
    ],
)
def test_support_of_an_answer_is_that_of_spans_with_its_words(answer: str, share: float) -> None:
    spans = tuple(
        AnswerSpan(passage=0, start=0, end=len(text), text=text, score=score)
        for text, score in (("Oda Brask", 0.5), ("Kestrow", 0.125))
    )
    reading = Reading(answerable=0.8, yes=0.1, no=0.05, spans=spans, relevance=(1.0,))
    assert reading.share_of(answer) == pytest.approx(share)
    assert reading.support_of(answer) == SupportFit().probability(0.8, reading.share_of(answer))
    product = SupportFit(constant=0.0, answerable=1.0, share=0.0)
    assert replace(reading, fit=product).support_of(answer) == pytest.approx(0.8 if share else 0.0)


@pytest.mark.parametrize(("answerable", "share"), [(0.9, 0.0), (0.0, 0.9), (0.0, 1e-9)])
def test_what_is_not_read_has_no_support(answerable: float, share: float) -> None:
    assert SupportFit().probability(answerable, share) == pytest.approx(0.0, abs=1e-3)


def test_folder_without_a_checker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"contains no evidence checker \(network\.onnx is missing\)"):
        EvidenceChecker.load(tmp_path)
