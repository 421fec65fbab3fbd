"""Reading: from questions and statements with passages to probabilities and answer spans.

The weights of the network are in 8 bits: a matrix is stored as whole numbers from -127 to 127 with one scale for each
row, and the product of the two replaces it in the graph. Only the file shrinks: sums and products take 32 bits. The
large checker also multiplies in 8 bits (`sleuth.tools.evidence_checker.large_model`).
"""

import json
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker.inputs import Evidence, Layout, Piece, Window
from sleuth.tools.onnx import as_inputs, open_session, run_session
from sleuth.tools.settings import Settings
from sleuth.tools.text.tokenization import name_key, sentence_spans

NETWORK, TOKENIZER, SETTINGS, WEIGHTS = "network.onnx", "tokenizer.json", "settings.json", "weights.safetensors"
"""Files in a checker's folder; the weights are in a file of their own, or in the network's."""
SHIPPED = Path(__file__).parent / "model"
"""The checker that comes with the package."""
LARGE = Path("models", "reader")
"""Folder of the large checker in a home, written by `sleuth model install reader`."""
Floats: TypeAlias = NDArray[np.float32]
Ids: TypeAlias = NDArray[np.int64]
Run: TypeAlias = Callable[[Ids, Ids, Ids], tuple[Floats, Floats]]
"""The network: ids, mask and types (rows, length) to logits of tokens (rows, length, columns) and the whole (rows, 7).

The columns are start, end and relevance; further ones are not read.
"""

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

SPANS = 5
_ANSWER_TOKENS = 30
_CLOSE = 1e-5
_BATCH = 8


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
class SupportFit:
    """Logistic regression of whether an answer is right (Platt, 1999): its constant and its weights.

    The weights are those of the log-odds of two probabilities: that the passages answer the question, and the share
    that the reading gives to answers of the same words.
    """

    constant: float = -0.6
    answerable: float = 0.7
    share: float = 0.5

    def probability(self, answerable: float, share: float) -> float:
        """Return the probability that an answer is right; 0 if it has no share."""
        if not share:
            return 0.0
        odds = self.constant + self.answerable * log_odds(answerable) + self.share * log_odds(share)
        return 1 / (1 + math.exp(-odds))


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Result of reading a question with passages.

    `answerable` is the probability that the passages together answer the question; `yes` and `no` are the probabilities
    that the answer is one of these and not a span. `spans` are the best ones, which do not overlap, best first;
    `relevance` has the probability of each passage to be part of the evidence. `fit` makes the support of both.
    """

    answerable: float
    yes: float
    no: float
    spans: tuple[AnswerSpan, ...]
    relevance: tuple[float, ...]
    fit: SupportFit = SupportFit()

    @property
    def answer(self) -> str:
        """The best answer, whether or not the passages answer the question: `yes`, `no`, or the best span's text."""
        if max(self.yes, self.no) > 1 - self.yes - self.no or not self.spans:
            return "yes" if self.yes > self.no else "no"
        return self.spans[0].text

    @property
    def by_relevance(self) -> list[int]:
        """The places of the passages, the most relevant first."""
        return sorted(range(len(self.relevance)), key=lambda at: -self.relevance[at])

    def support_of(self, answer: str) -> float:
        """Return the support of an answer: the probability that it is right, as fitted for the checker."""
        return self.fit.probability(self.answerable, self.share_of(answer))

    def share_of(self, answer: str) -> float:
        """Return the share of the reading's answers that have the same words.

        Yes and no count by how much one exceeds the other.
        """
        stated = name_key(answer)
        if stated in ("yes", "no"):
            return max(0.0, self.yes - self.no if stated == "yes" else self.no - self.yes)
        same = (span.score for span in self.spans if is_same_answer(answer, span.text))
        return (1 - self.yes - self.no) * sum(same)


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

    def __init__(
        self,
        layout: Layout,
        run: Run,
        temperatures: Temperatures | None = None,
        fit: SupportFit | None = None,
        *,
        name: str = "small",
    ) -> None:
        """Set the tokenizer, the network, the temperatures, without which logits are used as they are, the fit of the
        support, and the name.
        """
        self.name = name
        self._fit = fit or SupportFit()
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
            return open_session(folder / NETWORK, weights=_read_weights(folder / WEIGHTS), threads=threads)

        def run(ids: Ids, mask: Ids, types: Ids) -> tuple[Floats, Floats]:
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
            tokens, whole = run_session(session(), inputs)
            return tokens, whole

        layout = Layout(folder / TOKENIZER, piece=settings.get("piece"))
        temperatures, fit = Temperatures(**settings["temperatures"]), SupportFit(**settings.get("support", {}))
        return cls(layout, run, temperatures, fit, name=settings.get("name", folder.name))

    @classmethod
    def of_settings(cls, settings: Settings) -> "EvidenceChecker":
        """Return the checker of SLEUTH_CHECKER, else the large one if it is installed, else the small one.

        Raises:
            UsageError: the folder of SLEUTH_CHECKER does not contain a checker.
        """
        large = settings.home / LARGE
        return cls.load(settings.checker or (large if (large / NETWORK).is_file() else None))

    def read(self, question: str, passages: Sequence[Evidence]) -> Reading:
        """Return how the passages answer a question."""
        last, relevance = self._last(question, passages)
        _, yes, no = _softmax(last.whole[1:4]).tolist()
        answerable = float(_sigmoid(last.whole[:1] / self._temperatures.answerable)[0]) if passages else 0.0
        spans = tuple(_spans(last, passages))
        return Reading(
            answerable=answerable,
            yes=yes,
            no=no,
            spans=spans,
            relevance=relevance,
            fit=self._fit,
        )

    def check(self, statement: str, passages: Sequence[Evidence]) -> Support:
        """Return whether the passages support or contradict a statement."""
        last, relevance = self._last(statement, passages)
        chances = _softmax(last.whole[4:7] / self._temperatures.relation)
        supported, contradicted, rest = chances.tolist() if passages else (0.0, 0.0, 1.0)
        return Support(supported=supported, contradicted=contradicted, not_mentioned=rest, relevance=relevance)

    def read_batch(self, requests: Sequence[tuple[str, Sequence[Evidence]]]) -> list[Reading]:
        """Return the readings of several questions with their passages."""
        return [self.read(*request) for request in requests]

    def check_batch(self, requests: Sequence[tuple[str, Sequence[Evidence]]]) -> list[Support]:
        """Return the results of several statements with their passages."""
        return [self.check(*request) for request in requests]

    def logits(self, text: str, passages: Sequence[Evidence]) -> Floats:
        """Return the 7 logits of the whole, before the temperatures."""
        return self._last(text, passages)[0].whole

    def _last(self, text: str, passages: Sequence[Evidence]) -> tuple[_Read, tuple[float, ...]]:
        """Return the last reading, with its logits, and the relevance of the passages."""
        with self._turn:
            question = self._layout.question(text)
            pieces = self._layout.pieces(question, passages)
            reads = self._read(list(self._layout.windows(question, pieces)))
            relevance = np.concatenate([_relevance(read) for read in reads])
            if len(reads) > 1:
                reads = self._read([self._layout.best(question, pieces, relevance.tolist())])
        return reads[0], _by_passage(pieces, relevance, reads[0], len(passages))

    def _read(self, windows: Sequence[Window]) -> list[_Read]:
        readings: list[_Read] = []
        for part in (windows[start : start + _BATCH] for start in range(0, len(windows), _BATCH)):
            outputs = self._run(*as_inputs([(window.ids, window.types) for window in part]).values())
            rows = zip(part, *outputs, strict=True)
            readings += [_Read(window=window, tokens=tokens, whole=whole) for window, tokens, whole in rows]
        return readings


def _read_weights(file: Path) -> dict[str, NDArray[Any]]:
    from safetensors.numpy import load_file

    return load_file(file) if file.is_file() else {}


def _relevance(read: _Read) -> Floats:
    """Return the relevance of each piece: of the mean logit of its tokens."""
    means = [read.tokens[begin : end + 1, 2].mean() for _, begin, _, end in read.window.places()]
    return _sigmoid(np.array(means, dtype=np.float32))


def _by_passage(pieces: Sequence[Piece], first: Floats, last: _Read, passages: int) -> tuple[float, ...]:
    """Return each passage's relevance: of its best piece, by the last reading for pieces that were in it."""
    own = {id(piece): float(value) for piece, value in zip(pieces, first, strict=True)}
    own |= {id(piece): float(value) for piece, value in zip(last.window.pieces, _relevance(last), strict=True)}
    highest = [0.0] * passages
    for piece in pieces:
        highest[piece.passage] = max(highest[piece.passage], own[id(piece)])
    return tuple(highest)


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
    spans: list[AnswerSpan] = []
    for score, piece, first, last in sorted(candidates, key=lambda each: -each[0]):
        start, end = piece.starts[first], piece.ends[last]
        if not any(each.passage == piece.passage and each.start < end and start < each.end for each in spans):
            text = passages[piece.passage].text[start:end]
            if "\n" in text or len(list(sentence_spans(text))) > 1:  # a heading, or a sentence, and what follows it
                continue
            spans.append(AnswerSpan(passage=piece.passage, start=start, end=end, text=text, score=score))
        if len(spans) == SPANS:
            break
    yield from spans


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


def is_same_answer(stated: str, other: str) -> bool:
    """Return whether one of two answers contains all the words of the other, in order."""
    one, two = f" {name_key(stated)} ", f" {name_key(other)} "
    return bool(one.strip() and two.strip()) and (one in two or two in one)


def log_odds(chance: float) -> float:
    """Return the log-odds of a probability; 0 and 1 count as close to them."""
    chance = min(max(chance, _CLOSE), 1 - _CLOSE)
    return math.log(chance / (1 - chance))


def _softmax(logits: Floats) -> Floats:
    raised: Floats = np.exp(logits - logits.max())
    probabilities: Floats = raised / raised.sum()
    return probabilities


def _sigmoid(logits: Floats) -> Floats:
    probabilities: Floats = (1 / (1 + np.exp(-logits))).astype(np.float32)
    return probabilities
