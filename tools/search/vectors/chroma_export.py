"""Export of a Chroma collection that another application filled, as a corpus."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.search.langchain import TITLES
from sleuth.tools.search.vectors.chroma_index import connect, disconnect, translate_errors

if TYPE_CHECKING:
    from chromadb.api.client import Client

_PAGE = 1_000


def export_chroma(place: Path | str, collection: str | None, folder: Path) -> Path:
    """Write the records of a collection to a corpus in JSON Lines; their vectors are left out.

    Args:
        place: the folder of an embedded Chroma, or a server's URL.
        collection: its name; needed if there are several.
        folder: the corpus is written there.

    Returns:
        The file: one {"id", "title", "text"} per record, with the other fields of its metadata.

    Raises:
        UsageError: the folder has no Chroma database, or several collections; UnknownName for an unknown one.
        StoreError: Chroma cannot be read.
    """
    if isinstance(place, Path) and not (place / "chroma.sqlite3").is_file():
        raise UsageError(f"There is no Chroma database in {place}: it has no file chroma.sqlite3.")
    client = connect(place)
    try:
        with translate_errors(place):
            name = _choose(client, collection, place)
            target = folder / f"{name}.jsonl"
            folder.mkdir(parents=True, exist_ok=True)
            draft = target.with_suffix(".new")
            with draft.open("w", encoding="utf-8") as out:
                for record in _records(client, name):
                    out.write(json.dumps(record, ensure_ascii=False) + "\n")
            draft.replace(target)
    finally:
        disconnect(place, client)
    return target


def _choose(client: "Client", chosen: str | None, place: Path | str) -> str:
    names = sorted(each.name for each in client.list_collections())
    if chosen is None and len(names) == 1:
        return names[0]
    if chosen is None:
        listing = ", ".join(names) or "none"
        raise UsageError(f"{place} has {len(names)} collections ({listing}): name one with --chroma-collection.")
    if chosen not in names:
        raise UnknownName("Chroma collection", chosen, names, f"Available: {', '.join(names) or 'none'}.")
    return chosen


def _records(client: "Client", name: str) -> Iterator[dict[str, Any]]:
    collection = client.get_collection(name, embedding_function=None)
    for offset in range(0, collection.count(), _PAGE):
        page = collection.get(include=["documents", "metadatas"], limit=_PAGE, offset=offset)
        texts, about = page["documents"] or [], page["metadatas"] or []
        for id_, text, metadata in zip(page["ids"], texts, about, strict=True):
            fields: Mapping[str, Any] = metadata or {}
            title = next((fields[key] for key in TITLES if isinstance(fields.get(key), str) and fields[key]), id_)
            extra = {key: value for key, value in fields.items() if value not in (None, "") and key not in TITLES}
            yield {**extra, "id": id_, "title": title, "text": text or ""}
