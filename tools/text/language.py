"""The language of a text."""

import asyncio
import re
from functools import cache
from typing import TYPE_CHECKING

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
