"""Questions, gold answers and the systems to compare."""

from sleuth.studio.evaluation.data.gold import GoldTexts, gold_texts
from sleuth.studio.evaluation.data.oracle import FindingGold, PartlyGold, Parts, gold_passages
from sleuth.studio.evaluation.data.page_cache import PagesOf, remembering, shown
from sleuth.studio.evaluation.data.questions import (
    INVALID,
    GoldQuestion,
    QuestionFile,
    read_questions,
    require_gold,
    sample,
)
from sleuth.studio.evaluation.data.systems import System

__all__ = [
    "INVALID",
    "FindingGold",
    "GoldQuestion",
    "GoldTexts",
    "PagesOf",
    "PartlyGold",
    "Parts",
    "QuestionFile",
    "System",
    "gold_passages",
    "gold_texts",
    "read_questions",
    "remembering",
    "require_gold",
    "sample",
    "shown",
]
