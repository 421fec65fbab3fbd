"""Questions, gold answers and the systems to compare."""

from sleuth.studio.evaluation.data.gold import GoldTexts, gold_texts
from sleuth.studio.evaluation.data.oracle import OracleModel, OracleParts, OracleRetriever, gold_passages
from sleuth.studio.evaluation.data.page_cache import QuestionPages, cache_embeddings, page_passages
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
    "GoldQuestion",
    "GoldTexts",
    "OracleModel",
    "OracleParts",
    "OracleRetriever",
    "QuestionFile",
    "QuestionPages",
    "System",
    "cache_embeddings",
    "gold_passages",
    "gold_texts",
    "page_passages",
    "read_questions",
    "require_gold",
    "sample",
]
