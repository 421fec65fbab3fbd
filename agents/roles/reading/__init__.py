"""Roles that read passages and write answers from them."""

from sleuth.agents.roles.reading.answerer import (
    ANSWER,
    ANSWER_FROM_FACTS,
    ANSWER_FROM_MEMORY,
    ANSWER_UNAIDED,
    AnswerInput,
    Final,
    FromFacts,
    MemoryInput,
    Unaided,
)
from sleuth.agents.roles.reading.drafter import DRAFT
from sleuth.agents.roles.reading.extractor import EXTRACT, MOST, ExtractInput, Extraction, Triple
from sleuth.agents.roles.reading.reader import READ, Reading, ReadInput

__all__ = [
    "ANSWER",
    "ANSWER_FROM_FACTS",
    "ANSWER_FROM_MEMORY",
    "ANSWER_UNAIDED",
    "DRAFT",
    "EXTRACT",
    "MOST",
    "READ",
    "AnswerInput",
    "ExtractInput",
    "Extraction",
    "Final",
    "FromFacts",
    "MemoryInput",
    "ReadInput",
    "Reading",
    "Triple",
    "Unaided",
]
