"""From retrieved passage to verified citation; shared by all methods."""

from sleuth.graphs.evidence.answer_text import footnoted
from sleuth.graphs.evidence.citations import check, cited, quote_at, saying, support
from sleuth.graphs.evidence.generation import Generation, generate
from sleuth.graphs.evidence.outcomes import answered, conclude, declarative, ended, final_answer, known_steps, note
from sleuth.graphs.evidence.retrieval import Round, as_query, find, keep, load, names_in, passage_of, record, sources
from sleuth.graphs.evidence.text_spans import clean, locate, sentence_with

__all__ = [
    "Generation",
    "Round",
    "answered",
    "as_query",
    "check",
    "cited",
    "clean",
    "conclude",
    "declarative",
    "ended",
    "final_answer",
    "find",
    "footnoted",
    "generate",
    "keep",
    "known_steps",
    "load",
    "locate",
    "names_in",
    "note",
    "passage_of",
    "quote_at",
    "record",
    "saying",
    "sentence_with",
    "sources",
    "support",
]
