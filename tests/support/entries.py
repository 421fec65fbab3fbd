"""Short ways to make what the catalogue stores."""

from sleuth.tools.storage.catalogue import Entry
from sleuth.tools.types import Document, Passage, content_hash


def entry(document_id: str, *texts: str, title: str = "", source: str = "", by_place: bool = False) -> Entry:
    """A document whose passages are these texts, one line each.

    `by_place`: where a text changes its passage keeps its id, as with the lines of a corpus; otherwise, as with files,
    another text has another id.
    """
    whole = "\n".join(texts)
    passages, start = [], 0
    for place, text in enumerate(texts):
        mark = str(place) if by_place else content_hash(text)[:8]
        passages.append(
            Passage(
                id=f"{document_id}#{mark}",
                document_id=document_id,
                title=title or document_id,
                text=text,
                start=start,
                end=start + len(text),
            )
        )
        start += len(text) + 1
    document = Document(
        id=document_id,
        title=title or document_id,
        source=source or f"/files/{document_id}",
        text=whole,
        media_type="text/plain",
        content_hash=content_hash(whole),
        added_at="2026-01-01T00:00:00+00:00",
    )
    return Entry(document=document, passages=tuple(passages))
