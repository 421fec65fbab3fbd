"""Guess of the encoding of a text that is not UTF-8: the one that decodes all of it to common characters."""

from functools import lru_cache
from math import inf, log
from typing import NamedTuple

GUESS_BYTES = 1 << 20
_COMPARED = 4_096
_PUNCTUATION = "“”„’‘–—…€°§«»"
_LETTERS = ("äöüß", "éèêëàâçùûîïôœ", "áéíóúñü¿¡", "æøå", "äöåé", "ãõáéíóúâêôç", "àèéìòù")
_WESTERN = [frozenset(letters + letters.upper() + _PUNCTUATION) for letters in _LETTERS]
"""Letters of languages written in cp1252; a text has those of one."""
_USUAL = {
    "gb18030": frozenset({0xA1, 0xA3, *range(0xB0, 0xD8)}),
    "big5": frozenset({0xA1, *range(0xA4, 0xC7)}),
    "cp949": frozenset(range(0xB0, 0xC9)),
    "cp932": frozenset({0x81, 0x82, 0x83, *range(0x88, 0x98)}),
    "euc_jp": frozenset({0xA1, 0xA4, 0xA5, *range(0xB0, 0xD0)}),
}
"""First bytes of the common characters of Chinese, Korean and Japanese, about a hundred each."""
_LEAST, _CLEAR = -9.8, 5.0
"""Least mean log-likelihood of a character, and the lead over the next encoding that is clear."""


class Guess(NamedTuple):
    """An encoding, and whether another one is hardly possible."""

    encoding: str
    is_sure: bool


@lru_cache(maxsize=1)
def guess_encoding(data: bytes) -> Guess:
    """Return the most probable encoding of text that is not UTF-8."""
    letters = {letter for letter in _decoded(data, "cp1252") if letter > "\x7f"}
    if letters and any(letters <= language for language in _WESTERN):
        return Guess("cp1252", is_sure=True)
    found = {encoding: _likelihood(data, encoding) for encoding in _USUAL}
    best, second = sorted(found, key=lambda encoding: found[encoding], reverse=True)[:2]
    if found[best] > _LEAST * min(sum(letter > "\x7f" for letter in _decoded(data, best)), _COMPARED):
        return Guess(best, is_sure=found[best] - found[second] > _CLEAR)
    fault = next(at for at, byte in enumerate(data) if byte > 127)
    from charset_normalizer import from_bytes

    guess = from_bytes(data[max(0, fault - 2048) : fault + GUESS_BYTES]).best()
    return Guess(guess.encoding if guess else "cp1252", is_sure=False)


def _decoded(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return ""


def _likelihood(data: bytes, encoding: str) -> float:
    """Return the logarithm of the likelihood of the first characters beyond ASCII; all must be decodable."""
    letters = [letter for letter in _decoded(data, encoding) if letter > "\x7f"][:_COMPARED]
    common, rare = log(0.95 / 100 / len(_USUAL[encoding])), log(0.05 / 20_000)
    usual = sum(letter.encode(encoding, "replace")[0] in _USUAL[encoding] for letter in letters)
    has_kana = encoding != "euc_jp" or any("\u3040" < letter < "\u3100" for letter in letters)  # as Japanese text has
    return usual * common + (len(letters) - usual) * rare + (0.0 if has_kana else rare) if letters else -inf
