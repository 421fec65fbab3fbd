import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from entries import entry
from hashing_embedder import HashingEmbedder
from vllm_fixture import free_port

from sleuth.tools.library import Library
from sleuth.tools.retriever import Query
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def chroma_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Chroma server of our own."""
    port = free_port()
    program = str(Path(sys.executable).with_name("chroma"))
    folder = str(tmp_path_factory.mktemp("chroma"))
    command = [program, "run", "--path", folder, "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{url}/api/v2/heartbeat", server)
        yield url
    finally:
        server.terminate()
        server.wait()


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert server.poll() is None, "the Chroma server ended"
        try:
            if httpx.get(url).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail("the Chroma server does not answer")


async def test_a_library_keeps_its_vectors_on_a_server(settings: Settings, chroma_url: str) -> None:
    there = settings.model_copy(update={"chroma_url": chroma_url})
    async with await Library.open(there, embedder=HashingEmbedder()) as library:
        await library.put([entry("bridge", "A stone bridge."), entry("mill", "A water mill.")])
        hits = await library.search(Query(text="bridge. A stone bridge.", k=1, mode="dense"))
        assert [hit.passage.document_id for hit in hits] == ["bridge"]
        await library.delete(["bridge"])
    assert not (settings.home / "chroma").exists()
    embedder = HashingEmbedder()
    async with await Library.open(there, embedder=embedder) as library:
        hits = await library.search(Query(text="bridge. A stone bridge.", k=5, mode="dense"))
        assert [hit.passage.document_id for hit in hits] == ["mill"]
        assert embedder.embedded == []
