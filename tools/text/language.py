"""The language of a text."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

SURE = 0.7
"""Probability from which a language counts as detected."""
READ_CHARS = 2_000
"""Characters of a text from which its language is detected."""


def detect_language(text: str) -> str | None:
    """Return the language of a text as its ISO 639 code, such as "de"; None if it is uncertain."""
    code, probability = _identifier().classify(text[:READ_CHARS])
    return code if probability >= SURE else None


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
