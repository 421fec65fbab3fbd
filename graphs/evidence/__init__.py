"""From retrieved passage to verified citation; shared by all methods."""

from sleuth.graphs.evidence.answer_text import with_footnotes
from sleuth.graphs.evidence.citations import (
    citation_at,
    ensure_verbatim_support,
    find_support,
    verified_citations,
    verify_quotes,
)
from sleuth.graphs.evidence.outcomes import (
    Generation,
    answer_question,
    as_steps,
    finish,
    generate,
    make_note,
    make_verdict,
    stated_answer,
    verdict_for,
    yes_probability,
)
from sleuth.graphs.evidence.retrieval import (
    Round,
    archive_passages,
    as_sources,
    deserialize_passage,
    load_passages,
    make_query,
    search_notes,
    search_passages,
    serialize_passage,
    short_names,
)
from sleuth.graphs.evidence.text_spans import find_quote, find_sentence, strip_marks

__all__ = [
    "Generation",
    "Round",
    "answer_question",
    "archive_passages",
    "as_sources",
    "as_steps",
    "citation_at",
    "deserialize_passage",
    "ensure_verbatim_support",
    "find_quote",
    "find_sentence",
    "find_support",
    "finish",
    "generate",
    "load_passages",
    "make_note",
    "make_query",
    "make_verdict",
    "search_notes",
    "search_passages",
    "serialize_passage",
    "short_names",
    "stated_answer",
    "strip_marks",
    "verdict_for",
    "verified_citations",
    "verify_quotes",
    "with_footnotes",
    "yes_probability",
]
