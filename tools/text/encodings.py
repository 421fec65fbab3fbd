"""Decoding of text in unknown encodings."""

import re
from contextlib import suppress
from functools import lru_cache
from math import inf, log
from typing import NamedTuple

from sleuth.tools.errors import DocumentError
from sleuth.tools.text.normalization import normalize

GUESS_BYTES = 1 << 20
MAX_CONTROL_SHARE = 0.02
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

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
# Some binary formats hold few control characters (a PDF may be all ASCII), so their first bytes are checked too.
_BINARY_STARTS = (
    *(b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\x1f\x8b", b"\x7fELF"),
    *(b"\x89PNG", b"GIF8", b"\xff\xd8\xff"),
)
_ASCII = bytes(range(128))
_SHIFTING = re.compile(r"iso-?2022|hz|utf-?7", re.IGNORECASE)
"""Encodings of other characters by ASCII alone."""
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f]")


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
    likelihoods = {encoding: _likelihood(data, encoding) for encoding in _USUAL}
    best, second = sorted(likelihoods, key=lambda encoding: likelihoods[encoding], reverse=True)[:2]
    if likelihoods[best] > _LEAST * min(sum(letter > "\x7f" for letter in _decoded(data, best)), _COMPARED):
        return Guess(best, is_sure=likelihoods[best] - likelihoods[second] > _CLEAR)
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


def decode(data: bytes, *, declared: str | None = None) -> str:
    """Return text in an unknown encoding: by byte order mark, as UTF-8, as declared by the file, or by detection.

    Undecodable characters become U+FFFD. Raises DocumentError for binary data.
    """
    return normalize(decode_exactly(data, declared=declared))


def decode_exactly(data: bytes, *, declared: str | None = None) -> str:
    """Return text as `decode` does, with the line ends and control characters of the file."""
    text = _decode(data, declared)[0].rstrip("\x1a")  # the end of a file in DOS
    if data.startswith(_BINARY_STARTS) or len(_CONTROLS.findall(text)) > MAX_CONTROL_SHARE * len(text):
        raise DocumentError("holds binary data under a text suffix. Give it the suffix of its real format.")
    return text


def without_bom(data: bytes) -> bytes:
    """Return text with a byte order mark, or in UTF-16, as UTF-8 without a mark; other bytes unchanged."""
    is_wide = any(data.startswith(mark) for mark, _ in _BOMS) or _unmarked_utf16(data) is not None
    return _decode(data, None)[0].encode("utf-8", "surrogatepass") if is_wide else data


def encoding_doubt(data: bytes) -> str:
    """Return a remark about a text whose encoding is uncertain; empty for others."""
    guess = None if data.isascii() else _decode(data, None)[1]
    if guess is None or guess.is_sure:
        return ""
    return f"read as {guess.encoding}, which is uncertain. Save it as UTF-8 if its letters are wrong."


def _decode(data: bytes, declared: str | None) -> tuple[str, Guess | None]:
    """Return the text, and its encoding if that was guessed."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace"), None
    if unmarked := _unmarked_utf16(data):
        return data.decode(unmarked, "replace"), None
    text = data.decode("utf-8", "replace")
    is_shifted = data.isascii() and _SHIFTING.match(declared or "") is not None
    if not is_shifted and text.count("\ufffd") * 3 <= len(data.translate(None, _ASCII)):  # none, or few broken bytes
        return text, None
    with suppress(LookupError, ValueError):  # unknown, or not its encoding
        return data.decode(declared or ""), None
    guess = guess_encoding(data)
    return data.decode(guess.encoding, "replace"), guess


def _unmarked_utf16(data: bytes) -> str | None:
    """Return the byte order of UTF-16 without a mark, which has zeros in every other byte."""
    sample = data[:4096]
    half = len(sample) // 2
    low, high = sample[0::2].count(0), sample[1::2].count(0)
    if half and high > 0.4 * half and low < 0.05 * half:
        return "utf-16-le"
    return "utf-16-be" if half and low > 0.4 * half and high < 0.05 * half else None
