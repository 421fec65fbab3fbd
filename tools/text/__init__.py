"""Text normalization and sentence splitting."""

from sleuth.tools.text.normalization import (
    MAX_TITLE_CHARS,
    SENTENCE_END,
    check_unicode,
    clauses,
    comparison_key,
    decode,
    markdown_table,
    normalize,
    sanitize,
    sentences,
    single_line,
    title_from,
    unwrap_lines,
)

__all__ = [
    "MAX_TITLE_CHARS",
    "SENTENCE_END",
    "check_unicode",
    "clauses",
    "comparison_key",
    "decode",
    "markdown_table",
    "normalize",
    "sanitize",
    "sentences",
    "single_line",
    "title_from",
    "unwrap_lines",
]
