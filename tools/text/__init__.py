"""Text normalization and language detection; sentences, words, stems and names in a text."""

from sleuth.tools.text.language import detect_language, may_be_english, prepare_detection
from sleuth.tools.text.names import (
    FUNCTION_WORDS,
    NumberedMention,
    PassageNames,
    find_aliases,
    find_mentions,
    find_names,
    find_phrases,
    kept_names,
    name_id,
    number_mentions,
)
from sleuth.tools.text.normalization import (
    MAX_TITLE_CHARS,
    check_unicode,
    clauses,
    comparison_key,
    decode,
    encoding_doubt,
    markdown_table,
    normalize,
    sanitize,
    single_line,
    title_from,
    unwrap_lines,
    without_bom,
)
from sleuth.tools.text.sentences import Span, sentence_spans, sentences
from sleuth.tools.text.stemming import (
    ENGLISH,
    STEMMED_LANGUAGES,
    KeywordTerms,
    find_terms,
    language_of,
    question_language,
    question_stems,
    stems,
)
from sleuth.tools.text.tokenization import Word, name_key, tokenize
