"""Text normalization, sentence splitting and language detection."""

from sleuth.tools.text.language import detect_language
from sleuth.tools.text.normalization import (
    MAX_TITLE_CHARS,
    check_unicode,
    clauses,
    comparison_key,
    decode,
    markdown_table,
    normalize,
    sanitize,
    single_line,
    title_from,
    unwrap_lines,
)
from sleuth.tools.text.sentences import Span, sentence_spans, sentences

__all__ = [
    "MAX_TITLE_CHARS",
    "Span",
    "check_unicode",
    "clauses",
    "comparison_key",
    "decode",
    "detect_language",
    "markdown_table",
    "normalize",
    "sanitize",
    "sentence_spans",
    "sentences",
    "single_line",
    "title_from",
    "unwrap_lines",
]
