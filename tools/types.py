"""Documents, their passages, and search results."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal

Triple = tuple[str, str, str]
"""Subject, predicate and object."""


def content_hash(text: str) -> str:
    """Return the SHA-256 of the text as UTF-8, in hexadecimal: the key under which a text is stored."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def now() -> str:
    """Return the time in UTC, as ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One ingested text, its source, and metadata.

    date: ISO 8601, the document's own one or that of its file; language: ISO 639; tags: in lower case; meta: fields of
    its own. These and the author are empty if there are none.
    """

    id: str
    title: str
    source: str
    text: str
    media_type: str
    content_hash: str
    added_at: str
    owner: str = "local"
    author: str = ""
    date: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """A piece of a document's text: `document.text[start:end] == text`, in characters.

    location: its place in the file, such as "p. 12", "slide 3" or "Prices, rows 2–11"; empty if there is none.
    places: if it has several places, where each begins, for `quote_location`.
    """

    id: str
    document_id: str
    title: str
    text: str
    start: int
    end: int
    location: str = ""
    places: str = ""

    def fingerprint(self) -> str:
        """Return a hash of the content of a passage: data derived from it is valid for all passages with this hash."""
        return content_hash(f"{self.title}\0{self.text}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """One path from a passage that matches the question by itself to the passage found.

    kind: the source "names" the title found, the source is "named_by" it, or it "shares" a rare name with it. With
    PageRank: the walk "walks" here from the source, or from the query if the source is empty, over a name, or over a
    fact that a triple "states". The sentence with the name is in the passage `stands_in`, at these characters.
    gain: the part of the score that it adds.
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
    """Explanation of a score: its parts by name, and the paths that led to the passage, the best first.

    note: the reason if the order is not the requested one.
    """

    parts: Mapping[str, float]
    reasons: tuple[Reason, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A passage that a search found; rank counts from 1, scores compare only within one result list.

    why: the explanation of graph search; None for other modes.
    """

    passage: Passage
    score: float
    rank: int
    why: Explanation | None = None


def hit_to_json(hit: Hit, explain: bool = False) -> dict[str, object]:
    """Return the JSON form that `search` prints."""
    passage = hit.passage
    fields = {"passage": passage.id, "document": passage.document_id, "title": passage.title, "text": passage.text}
    place = {"location": passage.location} if passage.location else {}
    why = {"why": asdict(hit.why)} if explain and hit.why else {}
    return {**fields, **place, "score": hit.score, "rank": hit.rank, **why}
