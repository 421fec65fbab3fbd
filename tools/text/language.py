"""The language of a text, and the stems of its words: the terms of the keyword index.

A stem in another language than English carries its language, as in "de:bruck": words of two languages are different
terms, since their stems follow different rules. Korean, and scripts without spaces, become characters and pairs of
characters, whatever the language.
"""

import asyncio
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise, zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import tantivy

from sleuth.tools.types import Passage

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

SURE = 0.7
"""Probability from which a language counts as detected."""
READ_CHARS = 2_000
"""Characters of a text from which its language is detected."""


_ENGLISH = re.compile(r"\b(?:the|who|whose|what|when|where|which|why|how|does|did|were)\b", re.IGNORECASE)
_SURER = 15
"""How much more probable than English another language must be; names make the ratio up to 13 in English questions."""


def may_be_english(text: str) -> bool:
    """Return whether a text is not surely in another language than English."""
    if _ENGLISH.search(text):  # loading the detector takes most of a second
        return True
    ranked = _identifier().rank(text[:READ_CHARS])
    return bool(ranked[0][1] < _SURER * dict(ranked)["en"])


async def prepare_detection(text: str) -> None:
    """Load the detector in a thread, if `may_be_english` needs it for a text."""
    if not _ENGLISH.search(text):
        await asyncio.to_thread(_identifier)


def detect_language(text: str) -> str | None:
    """Return the language of a text as its ISO 639 code, such as "de"; None if it is uncertain."""
    code, probability = _identifier().classify(text[:READ_CHARS])
    return code if probability >= SURE else None


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


ENGLISH = "en"
"""The language of a text if its own is uncertain or has no stemmer."""
STEMMED_LANGUAGES = MappingProxyType(
    {
        "ar": "arabic",
        "da": "danish",
        "de": "german",
        "el": "greek",
        "en": "english",
        "es": "spanish",
        "fi": "finnish",
        "fr": "french",
        "hu": "hungarian",
        "it": "italian",
        "nl": "dutch",
        "nn": "norwegian",
        "no": "norwegian",
        "pt": "portuguese",
        "ro": "romanian",
        "ru": "russian",
        "sv": "swedish",
        "ta": "tamil",
        "tr": "turkish",
    }
)
"""tantivy's names of the languages with a stemmer, by ISO 639 code."""

_WITHOUT_STOP_WORDS = frozenset({"arabic", "greek", "romanian", "tamil", "turkish"})  # in tantivy
_LONGEST_WORD = 80
_REMEMBERED = 1 << 14
# Thai to Burmese, Khmer, kana, Chinese characters, and Korean syllables.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)


class KeywordTerms(NamedTuple):
    """The language of a passage, and the stems of its title and of its text, separated by spaces."""

    language: str
    title: str
    text: str


def language_of(text: str, detected: str | None = None) -> str:
    """Return the ISO 639 code of the language by whose rules the words of a text are stemmed.

    Args:
        text: The text.
        detected: Its detected language, empty if it is uncertain; None if it is to be detected.
    """
    code = (detect_language(text) or "") if detected is None else detected
    return code if code in STEMMED_LANGUAGES else ENGLISH


def stems(text: str, language: str) -> list[str]:
    """Return the stems of a text in a language, without stop words."""
    pieces = [piece for run in _UNSPACED.findall(text) for piece in (*run, *map("".join, pairwise(run)))]
    return [*_tagged(_analyzer(language).analyze(_UNSPACED.sub(" ", text)), language), *pieces]


def find_terms(passages: Sequence[Passage], detected: Sequence[str | None] = ()) -> list[KeywordTerms]:
    """Return the terms that the keyword index stores for each passage.

    Args:
        passages: The passages.
        detected: The detected language of each passage, empty if it is uncertain; None if it is to be detected.
    """
    terms = []
    for passage, guess in zip_longest(passages, detected):
        language = language_of(passage.text, guess)
        text = " ".join(stems(f"{passage.title}. {passage.text}", language))
        terms.append(KeywordTerms(language, " ".join(stems(passage.title, language)), text))
    return terms


def question_language(text: str, languages: Sequence[str]) -> str:
    """Return the language of a question; if there are no passages in it, their most frequent language.

    Args:
        text: The question.
        languages: Languages of the passages, the most frequent one first.
    """
    if len(languages) == 1:
        return languages[0]
    detected = language_of(text)
    return detected if detected in languages else languages[0]


def question_stems(text: str, languages: Sequence[str]) -> dict[str, list[str]]:
    """Return the stems that each word of a question has in the languages of the passages.

    Args:
        text: The question.
        languages: Languages of the passages, the most frequent one first.

    Returns:
        By the stem in the question's language, the stems in all languages. Stop words are omitted.
    """
    own = question_language(text, languages)
    others = [language for language in languages if language != own]
    by_stem: dict[str, list[str]] = {stem: [stem] for stem in stems(text, own)}
    for word in dict.fromkeys(_analyzer(None).analyze(_UNSPACED.sub(" ", text))) if others else ():
        for stem in _stems_of_word(word, own):
            by_stem[stem] += [each for language in others for each in _stems_of_word(word, language)]
    return {stem: list(dict.fromkeys(variants)) for stem, variants in by_stem.items()}


def _tagged(word_stems: Sequence[str], language: str) -> Sequence[str]:
    return word_stems if language == ENGLISH else [f"{language}:{stem}" for stem in word_stems]


@lru_cache(maxsize=_REMEMBERED)
def _stems_of_word(word: str, language: str) -> Sequence[str]:
    """Return the stem of a word in lower case; nothing for a stop word."""
    return _tagged(_analyzer(language, is_word=True).analyze(word), language)


@cache
def _analyzer(language: str | None, *, is_word: bool = False) -> tantivy.TextAnalyzer:
    """Return an analyzer of texts, or of single words in lower case; without a language it does not stem."""
    if is_word:
        tokens = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw())
    else:
        tokens = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        tokens = tokens.filter(tantivy.Filter.remove_long(_LONGEST_WORD)).filter(tantivy.Filter.lowercase())
    if language is not None:
        name = STEMMED_LANGUAGES[language]
        if name not in _WITHOUT_STOP_WORDS:
            tokens = tokens.filter(tantivy.Filter.stopword(name))
        tokens = tokens.filter(tantivy.Filter.stemmer(name))
    return tokens.build()
