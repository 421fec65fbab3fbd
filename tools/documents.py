"""The two things a collection holds: documents, and the passages they are cut into."""

from dataclasses import dataclass
from hashlib import sha256


def content_hash(text: str) -> str:
    """SHA-256 of the text as UTF-8, in hexadecimal: the name under which a text is kept."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
class Hit:
    """A passage that a search found; rank counts from 1, scores compare only within one result list."""

    passage: Passage
    score: float
    rank: int
