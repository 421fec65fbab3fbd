"""Reading: from questions and statements with passages to probabilities and answer spans.

The weights of the network are in 8 bits: a matrix is stored as whole numbers from -127 to 127 with one scale for each
row, and the product of the two replaces it in the graph. Only the file shrinks: sums and products take 32 bits.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker.inputs import Evidence, Layout, Piece, Window
from sleuth.tools.onnx import as_inputs, open_session
from sleuth.tools.text import name_key

NETWORK, TOKENIZER, SETTINGS = "network.onnx", "tokenizer.json", "settings.json"
"""Files in a checker's folder."""
SHIPPED = Path(__file__).parent / "model"
"""The checker that comes with the package."""
Floats: TypeAlias = NDArray[np.float32]
Ids: TypeAlias = NDArray[np.int64]
Run: TypeAlias = Callable[[Ids, Ids, Ids], tuple[Floats, Floats]]
"""The network: ids, mask and types (rows, length) to logits of tokens (rows, length, 3) and of the whole (rows, 7)."""
Request: TypeAlias = tuple[str, Sequence[Evidence]]
"""A question or statement, and the passages to read."""

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

SPANS = 5
_ANSWER_TOKENS = 30
_BATCH_TOKENS = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerSpan:
    """Part of a passage that may be the answer.

    `passage` is the passage's position in the input, `start` and `end` are characters in its text; `score` is the
    probability of the span among all of the window, given that a span is the answer.
    """

    passage: int
    start: int
    end: int
    text: str
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Result of reading a question with passages.

    `answerable` is the probability that the passages together answer the question; `yes` and `no` are the probabilities
    that the answer is one of these and not a span. `spans` are the best ones, which do not overlap, best first;
    `relevance` has the probability of each passage to be part of the evidence.
    """

    answerable: float
    yes: float
    no: float
    spans: tuple[AnswerSpan, ...]
    relevance: tuple[float, ...]

    @property
    def answer(self) -> str:
        """The best answer, whether or not the passages answer the question: `yes`, `no`, or the best span's text."""
        if max(self.yes, self.no) > 1 - self.yes - self.no or not self.spans:
            return "yes" if self.yes > self.no else "no"
        return self.spans[0].text

    def support_of(self, answer: str) -> float:
        """Return the support of an answer, from 0 to 1: what the reading gives to answers of the same words."""
        stated = name_key(answer)
        if stated in ("yes", "no"):
            share = self.yes if stated == "yes" else self.no
        else:
            share = (1 - self.yes - self.no) * sum(span.score for span in self.spans if _agree(stated, span.text))
        return self.answerable * min(1.0, share)


@dataclass(frozen=True, kw_only=True, slots=True)
class Support:
    """Result of checking a statement: probabilities whose sum is 1, and the relevance of each passage."""

    supported: float
    contradicted: float
    not_mentioned: float
    relevance: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Temperatures:
    """Divisors of the logits that make probabilities match frequencies (Guo et al., 2017)."""

    answerable: float = 1.0
    relation: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Read:
    window: Window
    tokens: Floats
    whole: Floats


class EvidenceChecker:
    """Reads passages with a network. All methods block: call them in a thread.

    Passages that do not fit into one window are read in several, in order. Then the most relevant of them are read
    together in one window, and that reading counts: an answer may take two passages that were in different windows.
    """

    def __init__(self, layout: Layout, run: Run, temperatures: Temperatures | None = None) -> None:
        """Set the tokenizer, the network, and the temperatures, without which logits are used as they are."""
        self._layout = layout
        self._run = run
        self._temperatures = temperatures or Temperatures()
        self._turn = threading.Lock()

    @classmethod
    @cache
    def load(cls, folder: Path | None = None, *, threads: int | None = None) -> "EvidenceChecker":
        """Return the checker that `training.evidence_checker.export` has written to a folder.

        It is loaded once, and its network when it is used first: all owners of a server share it.

        Args:
            folder: its folder; None is the one that comes with the package.
            threads: threads of the processor; None is one for each core.

        Raises:
            UsageError: the folder does not contain a checker.
        """
        folder = folder or SHIPPED
        if not (folder / NETWORK).is_file():
            raise UsageError(
                f"{folder} contains no evidence checker ({NETWORK} is missing): export one, or name its folder."
            )
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))

        @cache
        def session() -> "InferenceSession":
            return open_session(folder / NETWORK, threads=threads)

        def run(ids: Ids, mask: Ids, types: Ids) -> tuple[Floats, Floats]:
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
            tokens, whole = session().run(None, inputs)
            return tokens, whole

        return cls(Layout(folder / TOKENIZER), run, Temperatures(**settings["temperatures"]))

    def read(self, question: str, passages: Sequence[Evidence]) -> Reading:
        """Return how the passages answer a question."""
        return self.read_batch([(question, passages)])[0]

    def check(self, statement: str, passages: Sequence[Evidence]) -> Support:
        """Return whether the passages support or contradict a statement."""
        return self.check_batch([(statement, passages)])[0]

    def read_batch(self, requests: Sequence[Request]) -> list[Reading]:
        """Return the readings of many questions; those of similar length share a batch."""
        found = []
        for (read, relevance), (_, passages) in zip(self._last(requests), requests, strict=True):
            _, yes, no = _softmax(read.whole[1:4]).tolist()
            answerable = float(_sigmoid(read.whole[:1] / self._temperatures.answerable)[0]) if passages else 0.0
            spans = tuple(_spans(read, passages))
            found.append(Reading(answerable=answerable, yes=yes, no=no, spans=spans, relevance=relevance))
        return found

    def check_batch(self, requests: Sequence[Request]) -> list[Support]:
        """Return the results of many statements; those of similar length share a batch."""
        found = []
        for (read, relevance), (_, passages) in zip(self._last(requests), requests, strict=True):
            chances = _softmax(read.whole[4:7] / self._temperatures.relation)
            supported, contradicted, rest = chances.tolist() if passages else (0.0, 0.0, 1.0)
            found.append(
                Support(supported=supported, contradicted=contradicted, not_mentioned=rest, relevance=relevance)
            )
        return found

    def logits(self, requests: Sequence[Request]) -> Floats:
        """Return the logits of the whole (requests, 7), before the temperatures."""
        return np.stack([read.whole for read, _ in self._last(requests)])

    def _last(self, requests: Sequence[Request]) -> list[tuple[_Read, tuple[float, ...]]]:
        """Return the last reading of each request, with its logits, and the relevance of the passages."""
        with self._turn:
            questions = [self._layout.question(text) for text, _ in requests]
            pieces = [
                self._layout.pieces(question, passages)
                for question, (_, passages) in zip(questions, requests, strict=True)
            ]
            windows = [
                list(self._layout.windows(question, own)) for question, own in zip(questions, pieces, strict=True)
            ]
            reads = iter(self._read([window for own in windows for window in own]))
            first = [[next(reads) for _ in own] for own in windows]
            relevance = [np.concatenate([_relevance(read) for read in own]) for own in first]
            several = [at for at, own in enumerate(windows) if len(own) > 1]
            again = self._read([self._layout.best(questions[at], pieces[at], relevance[at].tolist()) for at in several])
        last = {**{at: own[0] for at, own in enumerate(first)}, **dict(zip(several, again, strict=True))}
        return [
            (last[at], _by_passage(pieces[at], relevance[at], last[at], len(passages)))
            for at, (_, passages) in enumerate(requests)
        ]

    def _read(self, windows: Sequence[Window]) -> list[_Read]:
        found: dict[int, _Read] = {}
        for part in _batches(windows):
            tokens, whole = self._run(*as_inputs([(windows[at].ids, windows[at].types) for at in part]).values())
            for row, at in enumerate(part):
                found[at] = _Read(window=windows[at], tokens=tokens[row], whole=whole[row])
        return [found[at] for at in range(len(windows))]


def _batches(windows: Sequence[Window]) -> Iterator[list[int]]:
    part: list[int] = []
    for at in sorted(range(len(windows)), key=lambda at: len(windows[at].ids)):
        if part and len(windows[at].ids) * (len(part) + 1) > _BATCH_TOKENS:
            yield part
            part = []
        part.append(at)
    if part:
        yield part


def _relevance(read: _Read) -> Floats:
    """Return the relevance of each piece: of the mean logit of its tokens."""
    means = [read.tokens[begin : end + 1, 2].mean() for _, begin, _, end in read.window.places()]
    return _sigmoid(np.array(means, dtype=np.float32))


def _by_passage(pieces: Sequence[Piece], first: Floats, last: _Read, passages: int) -> tuple[float, ...]:
    """Return each passage's relevance: of its best piece, by the last reading for pieces that were in it."""
    own = {id(piece): float(value) for piece, value in zip(pieces, first, strict=True)}
    own |= {id(piece): float(value) for piece, value in zip(last.window.pieces, _relevance(last), strict=True)}
    found = [0.0] * passages
    for piece in pieces:
        found[piece.passage] = max(found[piece.passage], own[id(piece)])
    return tuple(found)


def _spans(read: _Read, passages: Sequence[Evidence]) -> Iterator[AnswerSpan]:
    """Yield the best spans that do not overlap; a span lies in one piece."""
    places = [at for _, _, first, end in read.window.places() for at in range(first, end)]
    if not places:
        return
    starts, ends = (_softmax(read.tokens[places, column]) for column in (0, 1))
    candidates: list[tuple[float, Piece, int, int]] = []
    begin = 0
    for piece in read.window.pieces:
        part = slice(begin, begin := begin + len(piece.ids))
        candidates += [(score, piece, first, last) for score, first, last in _best(starts[part], ends[part])]
    taken: list[AnswerSpan] = []
    for score, piece, first, last in sorted(candidates, key=lambda each: -each[0]):
        start, end = piece.starts[first], piece.ends[last]
        if not any(each.passage == piece.passage and each.start < end and start < each.end for each in taken):
            text = passages[piece.passage].text[start:end]
            if "\n" in text:  # a heading and what follows it
                continue
            taken.append(AnswerSpan(passage=piece.passage, start=start, end=end, text=text, score=score))
        if len(taken) == SPANS:
            break
    yield from taken


def _best(starts: Floats, ends: Floats) -> list[tuple[float, int, int]]:
    """Return the best spans of a piece as score, first and last token."""
    chances = np.triu(starts[:, None] * ends[None, :]) - np.triu(starts[:, None] * ends[None, :], _ANSWER_TOKENS)
    best = np.argsort(-chances, axis=None, kind="stable")[: 4 * SPANS]
    rows, columns = np.unravel_index(best, chances.shape)
    return [
        (float(chances[row, column]), int(row), int(column))
        for row, column in zip(rows, columns, strict=True)
        if row <= column < row + _ANSWER_TOKENS
    ]


def _agree(stated: str, span: str) -> bool:
    """Return whether one of two answers contains all the words of the other, in order."""
    one, other = f" {stated} ", f" {name_key(span)} "
    return bool(one.strip() and other.strip()) and (one in other or other in one)


def _softmax(logits: Floats) -> Floats:
    raised: Floats = np.exp(logits - logits.max())
    found: Floats = raised / raised.sum()
    return found


def _sigmoid(logits: Floats) -> Floats:
    found: Floats = (1 / (1 + np.exp(-logits))).astype(np.float32)
    return found
