"""Guess of the encoding of a text that is not UTF-8: the one that decodes it to common characters."""

from functools import lru_cache
from math import inf, log
from typing import NamedTuple

from charset_normalizer import from_bytes

GUESS_BYTES = 1 << 20
_COMPARED = 4_096
_PUNCTUATION = "“”„’‘–—…€°§«»"
_WESTERN = [
    frozenset(letters + letters.upper() + _PUNCTUATION)
    for letters in ("äöüß", "éèêëàâçùûîïôœ", "áéíóúñü¿¡", "æøå", "äöåé", "ãõáéíóúâêôç", "àèéìòù")
]
"""Letters of languages written in cp1252; a text has those of one."""


class _Script(NamedTuple):
    """Frequent characters of a language, and the first bytes and number of other usual ones in an encoding."""

    frequent: frozenset[str]
    usual: frozenset[int]
    others: int


_KANA = frozenset(map(chr, range(0x3041, 0x30FF)))
_EAST_ASIAN = {
    "gb18030": _Script(
        frozenset(
            "的一是了我不人在他有这个上们来到时大地为子中你说生国年着就那和要出也得里后自以会家可下而过天去能对小多于"
        ),
        frozenset({0xA1, 0xA3, *range(0xB0, 0xD8)}),
        4_000,
    ),
    "big5": _Script(
        frozenset(
            "的一是了我不人在他有這個上們來到時大地為子中你說生國年著就那和要出也得里後自以會家可下而過天去能對小多於"
        ),
        frozenset({0xA1, *range(0xA4, 0xC7)}),
        5_500,
    ),
    "cp949": _Script(
        frozenset("이다는을의에가고하지로한은기도를사서리어나자인해시대라정부일과그들만여"),
        frozenset(range(0xB0, 0xC9)),
        2_350,
    ),
    "cp932": _Script(_KANA, frozenset({0x81, *range(0x88, 0x98)}), 3_000),
    "euc_jp": _Script(_KANA, frozenset({0xA1, *range(0xB0, 0xD0)}), 3_000),
}
_LEAST, _CLEAR = -9.8, 5.0
"""Least mean log-likelihood of a character in its script, and the lead over the next script that is clear."""


class Guess(NamedTuple):
    """An encoding, and whether another one is hardly possible."""

    encoding: str
    is_sure: bool


@lru_cache(maxsize=1)
def guess_encoding(data: bytes) -> Guess:
    """Return the most probable encoding of text that is not UTF-8."""
    marks = set(_decoded(data, "cp1252")) - set(map(chr, range(128)))
    if marks and any(marks <= letters for letters in _WESTERN):
        return Guess("cp1252", is_sure=True)
    found = {name: _likelihood(_decoded(data, name), name) for name in _EAST_ASIAN}
    best, second = sorted(found, key=lambda name: found[name][0], reverse=True)[:2]
    total, mean = found[best]
    if mean > _LEAST:
        return Guess(best, is_sure=total - found[second][0] > _CLEAR)
    fault = next(at for at, byte in enumerate(data) if byte > 127)
    guess = from_bytes(data[max(0, fault - 2048) : fault + GUESS_BYTES]).best()
    return Guess(guess.encoding if guess else "cp1252", is_sure=False)


def _decoded(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return ""


def _likelihood(text: str, encoding: str) -> tuple[float, float]:
    """Return the logarithms of the likelihood of the characters beyond ASCII, and of the mean one."""
    script = _EAST_ASIAN[encoding]
    characters = [character for character in text if character > "\x7f"][:_COMPARED]
    if not characters:
        return -inf, -inf
    total = 0.0
    for character in characters:
        if character in script.frequent:
            total += log(0.3 / len(script.frequent))
        else:
            usual = character.encode(encoding, "replace")[0] in script.usual
            total += log(0.65 / script.others if usual else 0.05 / 20_000)
    return total, total / len(characters)
