"""An evidence checker without a network."""

from collections.abc import Sequence

import pytest
from checker import TOKENIZER

from sleuth.tools.evidence_checker import Evidence, EvidenceChecker
from sleuth.tools.evidence_checker.checker import AnswerSpan, Reading, Support
from sleuth.tools.evidence_checker.inputs import Layout


class ScriptedChecker(EvidenceChecker):
    """A checker that always reads the same answer, from the passages that contain `evidence`."""

    def __init__(
        self, answer: str = "Varn", evidence: str = "stands in Varn", *, supported: float = 0.9, answerable: float = 0.9
    ) -> None:
        super().__init__(Layout(TOKENIZER), lambda ids, mask, types: pytest.fail("no network is run"))
        self.answer, self.evidence, self.supported, self.answerable = answer, evidence, supported, answerable
        self.read_of: list[tuple[str, list[str]]] = []

    def read(self, question: str, passages: Sequence[Evidence]) -> Reading:
        self.read_of.append((question, [each.title for each in passages]))
        right = [at for at, each in enumerate(passages) if self.evidence in each.text]
        spans = [AnswerSpan(passage=at, start=0, end=4, text=self.answer, score=0.95) for at in right]
        relevance = tuple(float(at in right) for at in range(len(passages)))
        return Reading(
            answerable=self.answerable if right else 0.1, yes=0.05, no=0.05, spans=tuple(spans), relevance=relevance
        )

    def check(self, statement: str, passages: Sequence[Evidence]) -> Support:
        return Support(supported=self.supported, contradicted=0.0, not_mentioned=1 - self.supported, relevance=())
