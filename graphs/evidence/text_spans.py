"""Positions of quotes and answers in a text, in characters."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter

from sleuth.tools.text.names import FUNCTION_WORDS
from sleuth.tools.text.tokenization import Span, sentence_spans, tokenize

_MARKS = re.compile(r"(?<!\s)\s*+\[\d+(?:\s*,\s*\d+)*\]")

_ALIKE = str.maketrans(
    dict.fromkeys('"“”„‟«»‹›‘’‚‛`´ʼ′″＂＇', "'") | dict.fromkeys("\u2010\u2011\u2012–—―\u2212﹘﹣－", "-")
)
_LONGER_OR_SHORTER = re.compile("…|[\u00ad\u200b-\u200d\u2060\ufeff]")
_LINK = re.compile(r"\[([^\[\]\n]*)\]\([a-z]+:(?:(?!\]\()[^)\s])*\)")
_DASH = r"\s*-[-\s]*"


def find_quote(quote: str, text: str) -> Span | None:
    """Return the position of a quote in a text.

    Letter case, runs of white space, the shapes of quotation marks, dashes and ellipses, invisible characters and the
    addresses of links do not matter.
    """
    words = re.sub(r"^\.{3}|\.{3}$", "", _folded(quote)[0].strip("-' \n")).strip("-' \n").split()
    if words:
        return next(_places(_pattern(words), text), None)
    literal = quote.strip()
    return (text.find(literal), text.find(literal) + len(literal)) if literal and literal in text else None


def _folded(text: str) -> tuple[str, Sequence[int]]:
    """Return a text with one shape of each mark, without invisible characters and addresses of links, and the place of
    each character.
    """
    folded = text.translate(_ALIKE)
    links = list(_LINK.finditer(folded))
    if not links and not _LONGER_OR_SHORTER.search(folded):
        return folded, range(len(folded))
    parts = [_LONGER_OR_SHORTER.sub("..." if character == "…" else "", character) for character in folded]
    for link in links:
        for at in (*range(link.start(), link.start(1)), *range(link.end(1), link.end())):
            parts[at] = ""
    return "".join(parts), [at for at, part in enumerate(parts) for _ in part]


def _pattern(words: Sequence[str]) -> str:
    """Return a pattern of words in any white space; around dashes there may be none."""
    parts = [part.split() for part in re.split(_DASH, _folded(" ".join(words))[0])]
    pattern = _DASH.join(r"\s+".join(map(re.escape, part)) for part in parts)
    return pattern.removeprefix(r"\s*").removesuffix(r"[-\s]*")


def _places(pattern: str, text: str) -> Iterator[Span]:
    folded, places = _folded(text)
    for match in re.finditer(pattern, folded, re.IGNORECASE):
        yield places[match.start()], places[match.end() - 1] + 1


def find_sentence(answer: str, text: str) -> Span | None:
    """Return the first sentence or line of a text, except headings, that contains an answer as whole words."""
    return next(find_sentences(answer, text), None)


def find_sentences(answer: str, text: str) -> Iterator[Span]:
    """Yield the sentences or lines of a text, except headings, that contain an answer as whole words, in characters."""
    words = _folded(strip_marks(answer))[0].strip("'").rstrip(".").split()
    if words and " ".join(words).casefold() not in ("yes", "no"):  # any sentence may contain a "no"
        matches = list(find_words(words, text))
        sentences = sentence_spans(text) if matches else []
        spans = (_around(span, sentences) for span in matches)
        yield from (span for span in spans if not text.startswith("#", span[0]))


def find_words(words: Sequence[str], text: str) -> Iterator[Span]:
    """Yield the places of a sequence of whole words; differences that do not matter in quotes do not matter here."""
    return _places(rf"(?<!\w){_pattern(words)}(?!\w)", text)


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text that are no function words."""
    return frozenset(word.form for word in tokenize(text)) - FUNCTION_WORDS


def numbers_in(text: str) -> set[str]:
    """Return the numbers of a text, without their separators."""
    return {re.sub(r"\D", "", number) for number in re.findall(r"\d[\d.,]*", text)}


def _around(span: Span, sentences: Sequence[Span]) -> Span:
    """Return the span from the beginning of the sentence in which a span begins to the end of the one where it ends."""
    first, last = (bisect_right(sentences, at, key=itemgetter(0)) - 1 for at in (span[0], span[1] - 1))
    return sentences[first][0], sentences[last][1]


def strip_marks(answer: str) -> str:
    """Return an answer without citation marks such as [2] and without surrounding white space."""
    return _MARKS.sub("", answer).strip()
