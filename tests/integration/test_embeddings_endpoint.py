import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import numpy as np
import pytest

from sleuth.tools.embedder import make_embedder
from sleuth.tools.errors import StoreError
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration


class Endpoint(BaseHTTPRequestHandler):
    """Answers with [length, 1] for each text, in reverse order; every path but /v1/embeddings is broken."""

    seen: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append(body | {"authorization": self.headers.get("Authorization")})
        rows = [{"index": n, "embedding": [len(text), 1]} for n, text in enumerate(body["input"])]
        answers = {"/v1/embeddings": {"data": rows[::-1]}, "/short/embeddings": {"data": rows[1:]}}
        self.send_response(500 if self.path == "/down/embeddings" else 200)
        self.end_headers()
        self.wfile.write(json.dumps(answers.get(self.path, {"error": "?"})).encode())

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def endpoint() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    seen: list[dict[str, Any]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Endpoint,), {"seen": seen}))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    server.server_close()


def test_vectors_come_in_the_order_of_the_texts_with_length_one(endpoint: tuple[str, list[dict[str, Any]]]) -> None:
    url, seen = endpoint
    texts = ["x" * length for length in range(1, 201)]
    rows = make_embedder(Settings(embedder=f"{url}/v1#some-model")).embed_passages(texts)
    assert np.allclose(rows[:, 0] / rows[:, 1], range(1, 201))
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert [(len(body["input"]), body["model"]) for body in seen] == [(128, "some-model"), (72, "some-model")]


def test_the_key_goes_to_the_model_server_only(endpoint: tuple[str, list[dict[str, Any]]]) -> None:
    url, seen = endpoint
    for model_url in (f"{url}/v1", "http://elsewhere/v1"):
        settings = Settings(embedder=f"{url}/v1", model_url=model_url, model_key="secret")  # type: ignore[arg-type]
        make_embedder(settings).embed_query("x")
    assert [body["authorization"] for body in seen] == ["Bearer secret", None]


@pytest.mark.parametrize("path", ["down", "other", "short"])
def test_an_endpoint_that_fails_is_explained(endpoint: tuple[str, list[dict[str, Any]]], path: str) -> None:
    url, _ = endpoint
    with pytest.raises(StoreError, match=f"{url}/{path}/embeddings"):
        make_embedder(Settings(embedder=f"{url}/{path}")).embed_query("x")
