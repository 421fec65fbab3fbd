"""Names in texts: the mentions and the aliases of a passage. Pure functions of one passage.

In scripts without capitals, and in texts that use none, every run of up to three words that neither begins nor ends
with a function word may be a name; without spaces between words, every run of two to six characters.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import NamedTuple

from sleuth.tools.text.tokenization import Word, name_key, sentence_spans, tokenize
from sleuth.tools.types import Passage

_INSIDE_NAMES = (
    "of the de la le les des du da do dos di del della degli der den dem von van zu und y e et and in on at for to a",
    "an al el bin ibn ben af av og och",
)
_OTHERS = (
    "i he she it its his her hers him they their them we our us you your my me this that these those there here who",
    "whom whose which what when where why how was were is are be been being am has have had do does did will would can",
    "could may might shall should must not no nor or but if then than as by from with without into onto upon over",
    "under between after before during since until while although though because however also both each either neither",
    "some any all most more many much few several such other another one only same so too very just now later about",
    "against among through out up down off again once",
)

CONNECTORS = frozenset(word for line in _INSIDE_NAMES for word in line.split())
FUNCTION_WORDS = CONNECTORS | frozenset(word for line in _OTHERS for word in line.split())


MOST_WORDS = 6
"""The longest run that is kept as a mention."""
LONGEST_TITLE, LONGEST_UNCASED = 10, 4
"""The longest titles that are found in a text: those that begin with a capital, and others."""
UNCASED, AT_THE_START = 0.3, 0.6
"""How surely a run of words is a name if it has no capital, or only that of the sentence's first word."""
FEW_WORDS = 8
MOST_NAMES = 600
"""What is kept of one passage at most: a bound for texts without capitals."""

_LINK = re.compile(r"\[([^\]\n]{1,200})\]\(<?([^)>\s]+)")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.{1,150}?)[ \t]*#*$", re.MULTILINE)
_BOLD = re.compile(r"(?<![*\w])\*\*([^*\n:]{2,80}?)\*\*(?!\*)")
_BRACKET = re.compile(r"(?<!\s)\s*[(\[（][^()\[\]（）]*[)\]）]\s*$")
_DIVIDED = re.compile(r"(?<!\s)\s+[-–—|]\s+|:\s+")


class Mention(NamedTuple):
    """A name and its span in characters; `sure` (0 to 1) is the certainty that it is written as a name."""

    name: str
    start: int
    end: int
    sure: float = 1.0


class NumberedMention(NamedTuple):
    """A mention whose name is replaced by its number (`name_id`), as in the index."""

    name: int
    start: int
    end: int
    sure: float


class PassageNames(NamedTuple):
    """The aliases of a passage, with weights, and the names that it mentions; all by number."""

    aliases: Mapping[int, float]
    mentions: Sequence[int]


@lru_cache(maxsize=1 << 16)
def name_id(name: str) -> int:
    """Return a 56-bit hash that represents a name in the index."""
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=7).digest(), "big")


def number_mentions(mentions: Iterable[Mention]) -> list[NumberedMention]:
    """Return the same mentions with their names' numbers."""
    return [NumberedMention(name_id(name), start, end, sure) for name, start, end, sure in mentions]


def find_mentions(text: str) -> list[Mention]:
    """Return the names in a text: capitalized runs, shorter ones inside them, and targets of links."""
    runs = _sentence_words(text)
    mentions = [mention for run in runs for mention in _mentioned(run, cased=True)]
    if _are_without_case(runs):
        mentions += [mention for run in runs for mention in _mentioned(run, cased=False)]
    return [*_linked(text), *mentions]


def kept_names(text: str) -> list[str]:
    """Return the distinct names that the index stores for a text, in order."""
    return list(dict.fromkeys(mention.name for mention in find_mentions(text)))[:MOST_NAMES]


def find_phrases(text: str) -> list[Mention]:
    """Return every run of words that may be a title: more than `find_mentions`, for looking up aliases."""
    runs = _sentence_words(text)
    cased = not _are_without_case(runs)
    return [*_linked(text), *(phrase for run in runs for phrase in _phrased(run, cased=cased))]


def find_aliases(passage: Passage) -> dict[str, float]:
    """Return a passage's aliases, weighted up to 1: title and its shorter forms, headings, file name, leading names."""
    weights: dict[str, float] = {}
    for name, weight in _alias_candidates(passage):
        form = name_key(name)
        if _may_be_alias(form):
            weights[form] = max(weight, weights.get(form, 0.0))
    return weights


def find_names(passages: Sequence[Passage]) -> list[PassageNames]:
    """Return the names that the entity graph stores for each passage."""
    return [
        PassageNames(
            {name_id(name): weight for name, weight in find_aliases(passage).items()},
            array("q", sorted(map(name_id, kept_names(passage.text)))),
        )
        for passage in passages
    ]


def _may_be_alias(form: str) -> bool:
    return len(form) > 1 and form not in FUNCTION_WORDS and not form.isdigit()


def _alias_candidates(passage: Passage) -> Iterator[tuple[str, float]]:
    yield from _title_forms(passage.title)
    text = passage.text
    for match in _HEADING.finditer(text):
        yield from ((form, 0.8 * weight) for form, weight in _title_forms(match[1]))
    path = PurePosixPath(passage.document_id)
    if path.suffix:
        yield path.stem.replace("_", " ").replace("-", " "), 0.8
    for match in _BOLD.finditer(text[:400]):
        yield match[1], 0.5
        break
    leading = _leading_name(text)
    if leading is not None:
        yield leading, 0.5


def _title_forms(title: str) -> Iterator[tuple[str, float]]:
    """Yield the whole title (1), without bracket or article (.9), and its part before a comma or a dash (.7)."""
    yield title, 1.0
    bare = _BRACKET.sub("", title)
    yield bare, 0.9
    if bare.casefold().startswith("the "):
        yield bare[4:], 0.9
    for head in (bare.partition(", ")[0], _DIVIDED.split(bare)[0]):
        if len(head.split()) > 1:
            yield head, 0.7


def _leading_name(text: str) -> str | None:
    """Return the name at the beginning of a text, which is often its subject if there is no title."""
    for start, end in sentence_spans(text[:400])[:2]:
        run = tokenize(text, start, end)
        for at, word in enumerate(run[:2]):
            if word.shape == "name" and word.form not in FUNCTION_WORDS:
                last = max(_ends(run, at), default=at)
                return text[word.start : run[last].end]
    return None


@lru_cache(maxsize=64)
def _sentence_words(text: str) -> list[list[Word]]:
    """Return the words of each sentence; cached, since edges use a seed's words several times."""
    return [tokenize(text, start, end) for start, end in sentence_spans(text)]


def _are_without_case(runs: Sequence[Sequence[Word]]) -> bool:
    """Return whether sentences have (nearly) no capitals after their first words; false for very short texts."""
    shapes = Counter(word.shape for run in runs for word in run[1:])
    if any(word.shape in ("caseless", "unspaced") for run in runs for word in run):
        return shapes["name"] <= 0.1 * shapes.total()
    return shapes.total() >= FEW_WORDS and shapes["name"] <= 0.02 * shapes.total()


def _linked(text: str) -> Iterator[Mention]:
    """Yield the targets of Markdown links, by the file's name."""
    if "](" not in text:
        return
    for match in _LINK.finditer(text):
        target = PurePosixPath(match[2].partition("#")[0])
        if "://" not in match[2] and target.suffix:
            yield Mention(name_key(target.stem.replace("_", " ").replace("-", " ")), match.start(1), match.end(1))


def _mentioned(run: Sequence[Word], *, cased: bool) -> Iterator[Mention]:
    for at, word in enumerate(run):
        ends = _ends(run, at) if cased else _caseless_ends(run, at)
        if word.shape == "unspaced" and not cased:
            yield from _characters(word)
        for last in ends:
            yield Mention(" ".join(word.form for word in run[at : last + 1]), word.start, run[last].end)


def _ends(run: Sequence[Word], at: int) -> Iterator[int]:
    """Yield the possible ends of a name that begins here: at capitals and numbers, across small connecting words."""
    first = run[at]
    if first.shape == "plain" or not _may_begin(run, at):
        return
    if at > 0 and first.shape == "name" and len(first.form) > 1 and first.form not in FUNCTION_WORDS:
        yield at  # the first word of a sentence is always capitalized
    small, commas = 0, 0
    for last in range(at + 1, min(len(run), at + MOST_WORDS)):
        word = run[last]
        commas += word.gap == "comma"
        if word.gap == "break" or commas > 1 or (word.gap == "comma" and word.shape != "name"):
            return
        if word.shape in ("name", "number"):
            small = 0
            yield last
        else:
            small += 1
            if small > 2 or word.form not in CONNECTORS:
                return


def _may_begin(run: Sequence[Word], at: int) -> bool:
    word = run[at]
    if word.shape == "number":
        return at + 1 < len(run) and run[at + 1].shape == "name"
    return word.shape == "name" and (at > 0 or word.form not in FUNCTION_WORDS or word.form == "the")


def _caseless_ends(run: Sequence[Word], at: int) -> Iterator[int]:
    first = run[at]
    if first.shape == "unspaced" or first.form in FUNCTION_WORDS:
        return
    if first.shape == "caseless" and len(first.form) > 1:
        yield at
    for last in range(at + 1, min(len(run), at + 3)):
        if run[last].gap != "close" or run[last].shape == "unspaced":
            return
        if run[last].form not in FUNCTION_WORDS:
            yield last


def _characters(word: Word) -> Iterator[Mention]:
    """Yield runs of two to six characters; the aliases determine which of them are names."""
    for at in range(len(word.form) - 1):
        for last in range(at + 2, min(len(word.form), at + MOST_WORDS) + 1):
            yield Mention(word.form[at:last], word.start + at, word.start + last)


def _phrased(run: Sequence[Word], *, cased: bool) -> Iterator[Mention]:
    for at, word in enumerate(run):
        if word.shape == "unspaced":
            yield from _characters(word)
        name = word.form
        capitals = int(_counts(run, at))
        if word.shape != "plain" and _may_be_alias(name):
            yield Mention(name, word.start, word.end, 1.0 if capitals else AT_THE_START)
        for last in range(at + 1, _limit(run, at)):
            name = f"{name} {run[last].form}"
            capitals += _counts(run, last)
            if word.shape != "plain" or run[last].form not in FUNCTION_WORDS:
                sure = UNCASED if word.shape == "plain" and cased else 1.0 if capitals or not cased else AT_THE_START
                yield Mention(name, word.start, run[last].end, sure)


def _limit(run: Sequence[Word], at: int) -> int:
    """Return the maximum end of a phrase: far for a capitalized title, a few words for others."""
    if run[at].shape != "plain":
        return min(len(run), at + LONGEST_TITLE)
    if run[at].form in FUNCTION_WORDS:
        return at
    end = min(len(run), at + LONGEST_UNCASED)
    return next((last for last in range(at + 1, end) if run[last].gap == "break"), end)


def _counts(run: Sequence[Word], at: int) -> bool:
    """Return whether a word is written as part of a name; a sentence's first word is always capitalized."""
    return run[at].shape == "caseless" or (at > 0 and run[at].shape != "plain")
