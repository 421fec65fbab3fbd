"""Text normalization and sentence splitting."""

from sleuth.tools.text.normalization import (
    MAX_TITLE_CHARS,
    SENTENCE_END,
    check_unicode,
    clauses,
    decode,
    markdown_table,
    normalise,
    one_line,
    sentences,
    storable,
    title_from,
    unwrap,
    words,
)

__all__ = [
    "MAX_TITLE_CHARS",
    "SENTENCE_END",
    "check_unicode",
    "clauses",
    "decode",
    "markdown_table",
    "normalise",
    "one_line",
    "sentences",
    "storable",
    "title_from",
    "unwrap",
    "words",
]
