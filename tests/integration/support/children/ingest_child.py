"""An ingest in a process of its own, slow enough to be killed on the way: HOME PATH..."""

import asyncio
import sys
import time
from pathlib import Path

from hashing_embedder import HashingEmbedder

from sleuth.graphs.ingestion.pipeline import IngestProgress, ingest
from sleuth.tools.search.vectors.embedder import Vectors
from sleuth.tools.settings import Settings


class SlowEmbedder(HashingEmbedder):
    """Takes a moment for every batch, as a model does."""

    def embed_passages(self, texts: list[str]) -> Vectors:
        time.sleep(0.1)
        return super().embed_passages(texts)


async def main(home: str, *paths: str) -> None:
    def show(progress: IngestProgress) -> None:
        sys.stdout.write(f"{progress.stored} {progress.embedded}\n")
        sys.stdout.flush()

    settings = Settings(home=Path(home))
    await ingest([Path(path) for path in paths], settings=settings, on_progress=show, embedder=SlowEmbedder())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
