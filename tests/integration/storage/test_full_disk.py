import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from folders import PYTHONPATH
from hashing_embedder import HashingEmbedder
from test_ingest_store import corpus

from sleuth.graphs.ingestion.graph import ingest
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration


# No file may grow beyond this: what a full disk is like, for one process only.
CRAMPED = """
import asyncio, resource, sys
from pathlib import Path
from hashing_embedder import HashingEmbedder
from sleuth.graphs.ingestion.graph import ingest
from sleuth.tools.errors import StoreError
from sleuth.tools.settings import Settings

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), -1))
try:
    asyncio.run(ingest([Path(sys.argv[3])], settings=Settings(home=Path(sys.argv[2])), embedder=HashingEmbedder()))
except StoreError as error:
    print(error)
else:
    print("it all went in")
"""


@pytest.mark.parametrize("bytes_", [0, 20_000, 100_000, 400_000])
async def test_full_disk_is_explained_and_loses_nothing(settings: Settings, tmp_path: Path, bytes_: int) -> None:
    file = corpus(tmp_path / "c.jsonl", 1_500)
    command = [sys.executable, "-c", CRAMPED, str(bytes_), str(settings.home), str(file)]
    environment = os.environ | {"PYTHONPATH": PYTHONPATH}
    cramped = await asyncio.to_thread(
        subprocess.run, command, env=environment, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in cramped.stderr, cramped.stderr
    assert "cannot be" in cramped.stdout
    assert len(cramped.stdout.splitlines()) <= 2, cramped.stdout
    report = await ingest([file], settings=settings, embedder=HashingEmbedder())
    assert report.added + report.updated + report.unchanged == 1_500
