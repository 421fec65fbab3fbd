# The texts of another application's Chroma collection are ingested: python chroma_import.py FOLDER COLLECTION
import json
import sys
from pathlib import Path

import chromadb

from sleuth import sync

client = chromadb.PersistentClient(sys.argv[1])  # of a server: chromadb.HttpClient("localhost", 8000)
found = client.get_collection(sys.argv[2], embedding_function=None).get()
corpus = Path(f"{sys.argv[2]}.jsonl").absolute()
with corpus.open("w", encoding="utf-8") as out:
    for id, text, metadata in zip(found["ids"], found["documents"] or [], found["metadatas"] or [], strict=True):
        about = metadata or {}
        title = about.get("title") or about.get("source") or id
        out.write(json.dumps({**about, "id": id, "title": title, "text": text or ""}) + "\n")
print(sync.ingest(corpus))
