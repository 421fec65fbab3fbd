"""A corpus of more than two batches, and an embedder that waits: a test can pause the ingestion."""

import threading

from hashing_embedder import HashingEmbedder

from sleuth.tools.search.vectors.embedder import Vectors

LINES = 1300
"""The first batch is embedded while the second is read."""
ROWS = (f'{{"id": "p{n}", "title": "T", "text": "The text number {n}."}}' for n in range(LINES))
CORPUS = {"corpus.jsonl": "\n".join(ROWS)}


class Gated(HashingEmbedder):
    """Embeds nothing until its gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.gate = threading.Event(), threading.Event()

    def embed_passages(self, texts: list[str]) -> Vectors:
        self.reached.set()
        self.gate.wait()
        return super().embed_passages(texts)
