"""Input of the evidence checker: a question with passages as token ids, and tokens back to characters.

`[CLS] question [SEP] title. passage [SEP] title. passage [SEP]`, with the tokenizer's own marks. Several passages share
one window, so that the encoder can read an answer that takes two of them. A window contains complete pieces only; a
piece is a passage, or a part of a longer one. Its relevance is read from all of its tokens.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.tools.text.tokenization import sentence_spans

if TYPE_CHECKING:
    from tokenizers import Encoding

WINDOW = 512
"""Tokens that the encoder reads together: its positions."""
QUESTION = 128
"""Tokens of the question that are read; the rest is cut off."""
_TITLE = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """A passage to read; the title is read before the text, and no answer comes from it."""

    text: str
    title: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A passage as tokens, or a part of a long one.

    `passage` is the passage's position in the input; `starts` and `ends` are characters in its text, one of each for
    every token after those of the title.
    """

    passage: int
    title: tuple[int, ...]
    ids: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.title) + len(self.ids) + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """One row of the encoder's input.

    `begins` is the position of each piece's first token.
    """

    ids: tuple[int, ...]
    types: tuple[int, ...]
    pieces: tuple[Piece, ...]
    begins: tuple[int, ...]

    def places(self) -> Iterator[tuple[Piece, int, int, int]]:
        """Yield each piece with the positions of its first token, of the first one of its text, and of its `[SEP]`."""
        for piece, begin in zip(self.pieces, self.begins, strict=True):
            yield piece, begin, begin + len(piece.title), begin + len(piece) - 1


class Layout:
    """The tokenizer, and how questions and passages become windows. Not for two threads at the same time."""

    def __init__(self, file: Path, *, piece: int | None = None) -> None:
        """Load a `tokenizer.json`; its own truncation and padding are switched off.

        Args:
            file: the tokenizer.
            piece: tokens of a piece, which then contains complete sentences; None cuts only what exceeds a window.
        """
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._begin, self._separator = self._tokenizer.encode("").ids
        self._piece = piece

    def question(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a question or statement, up to QUESTION."""
        return tuple(self._encode([text])[0].ids[:QUESTION])

    def pieces(self, question: Sequence[int], passages: Sequence[Evidence]) -> list[Piece]:
        """Return the passages as pieces that each fit into a window with the question, in order."""
        texts = self._encode([passage.text for passage in passages])
        titles = self._encode([f"{passage.title}." if passage.title else "" for passage in passages])
        all_pieces: list[Piece] = []
        for at, (passage, text, title) in enumerate(zip(passages, texts, titles, strict=True)):
            heading = tuple(title.ids[:_TITLE])
            room = WINDOW - len(question) - 3 - len(heading)
            fixed = (slice(begin, begin + room) for begin in range(0, max(1, len(text.ids)), room))
            for part in _sentences(passage.text, text.offsets, min(room, self._piece)) if self._piece else fixed:
                starts, ends = zip(*text.offsets[part], strict=True) if text.ids else ((), ())
                all_pieces.append(
                    Piece(passage=at, title=heading, ids=tuple(text.ids[part]), starts=starts, ends=ends)
                )  # fmt: skip
        return all_pieces

    def window(self, question: Sequence[int], pieces: Sequence[Piece]) -> Window:
        """Return the window of pieces that fit together."""
        ids = [self._begin, *question, self._separator]
        asked = len(ids)
        begins = []
        for piece in pieces:
            begins.append(len(ids))
            ids += [*piece.title, *piece.ids, self._separator]
        types = (0,) * asked + (1,) * (len(ids) - asked)
        return Window(ids=tuple(ids), types=types, pieces=tuple(pieces), begins=tuple(begins))

    def windows(self, question: Sequence[int], pieces: Sequence[Piece]) -> Iterator[Window]:
        """Yield windows that together contain every piece once, in order; without pieces, one of the question alone."""
        room = WINDOW - len(question) - 2
        part: list[Piece] = []
        for piece in pieces:
            if part and sum(map(len, part)) + len(piece) > room:
                yield self.window(question, part)
                part = []
            part.append(piece)
        yield self.window(question, part)

    def best(self, question: Sequence[int], pieces: Sequence[Piece], relevance: Sequence[float]) -> Window:
        """Return the window of the most relevant pieces that fit together, in their own order."""
        room = WINDOW - len(question) - 2
        chosen: list[int] = []
        for at in sorted(range(len(pieces)), key=lambda at: -relevance[at]):
            if len(pieces[at]) <= room:
                chosen.append(at)
                room -= len(pieces[at])
        return self.window(question, [pieces[at] for at in sorted(chosen)])

    def _encode(self, texts: Sequence[str]) -> "list[Encoding]":
        return self._tokenizer.encode_batch(list(texts), add_special_tokens=False)


def _sentences(text: str, tokens: Sequence[tuple[int, int]], most: int) -> Iterator[slice]:
    """Yield the tokens of each piece: complete sentences, unless one is longer than a piece."""
    if len(tokens) <= most:
        yield slice(0, most)
        return
    starts = [start for start, _ in tokens]
    ends = [bisect_left(starts, end) for _, end in sentence_spans(text, lines=False)]
    begin = 0
    while begin < len(tokens):
        last = bisect_right(ends, begin + most) - 1
        end = ends[last] if last >= 0 and ends[last] > begin else begin + most
        yield slice(begin, end)
        begin = end
