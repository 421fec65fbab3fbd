"""The two things a collection holds, documents and the passages they are cut into; and what a search finds."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    pass


def content_hash(text: str) -> str:
    """SHA-256 of the text as UTF-8, in hexadecimal: the name under which a text is kept."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def now() -> str:
    """The time in UTC, as ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One text that was read in, and where it came from."""

    id: str
    title: str
    source: str
    text: str
    media_type: str
    content_hash: str
    added_at: str
    owner: str = "local"


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """A piece of a document's text: `document.text[start:end] == text`, in characters."""

    id: str
    document_id: str
    title: str
    text: str
    start: int
    end: int

    def fingerprint(self) -> str:
        """What readers and indexes see of a passage, as a hash: where it is equal, what was made of it holds."""
        return content_hash(f"{self.title}\0{self.text}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """One way from a passage that answers to the question by itself to the one found.

    kind: the source "names" what was found, the source is "named_by" it, or it "shares" a rare name with it. With
    PageRank: the walker "walks" here from the source, or from the query where that is empty, over a name or over what
    a triple "states". The sentence that has the name stands in the passage `stands_in`, at these characters.
    gain: what it adds to the score.
    """

    kind: Literal["names", "named_by", "shares", "walks", "states"]
    source: str
    name: str
    stands_in: str
    start: int
    end: int
    sentence: str
    gain: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """How a score came about: its parts by name, and the ways that led to the passage, the best first.

    note: why the order is not the one that was asked for, where it is not.
    """

    parts: Mapping[str, float]
    reasons: tuple[Reason, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A passage that a search found; rank counts from 1, scores compare only within one result list.

    why: how graph search came to it; other modes have nothing to say.
    """

    passage: Passage
    score: float
    rank: int
    why: Explanation | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbedderRecord:
    """Which embedder a collection was built with; the dimension is known after its first passage."""

    name: str
    dimension: int | None


def hit_json(hit: Hit, explain: bool = False) -> dict[str, object]:
    """The JSON form that `search` prints."""
    passage = hit.passage
    shown = {"passage": passage.id, "document": passage.document_id, "title": passage.title, "text": passage.text}
    why = {"why": asdict(hit.why)} if explain and hit.why else {}
    return {**shown, "score": hit.score, "rank": hit.rank, **why}
