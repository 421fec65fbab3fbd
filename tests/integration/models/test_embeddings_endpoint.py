import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import numpy as np
import pytest

from sleuth.tools.errors import StoreError
from sleuth.tools.http import MAX_REPLY_BYTES
from sleuth.tools.search.vectors.embedder import make_embedder
from sleuth.tools.settings import Settings

Bound = tuple[str, list[dict[str, Any]]]
"""The address of an endpoint, and the requests that it received."""

ODD: dict[str, Any] = {
    "/empty/embeddings": {"data": []},
    "/hollow/embeddings": {"data": [{"index": 0, "embedding": []}]},
    "/zero/embeddings": {"data": [{"index": 0, "embedding": [0, 0.0]}]},
    "/nan/embeddings": {"data": [{"index": 0, "embedding": [1, float("nan")]}]},
    "/infinite/embeddings": {"data": [{"index": 0, "embedding": [1e200, 1e200]}]},
    "/null/embeddings": {"data": [{"index": 0, "embedding": [1, None]}]},
    "/text/embeddings": {"data": "many"},
    "/twice/embeddings": {"data": [{"index": 0, "embedding": [1, 2]}] * 2},
    "/elsewhere/embeddings": {"data": [{"index": 7, "embedding": [1, 2]}]},
    "/large/embeddings": {"data": " " * (MAX_REPLY_BYTES + 1)},
}
"""Answers to one text that are no vector."""


class Endpoint(BaseHTTPRequestHandler):
    """Answers with [length, 1] for each text, in reverse order; every path but /v1/embeddings is broken.

    /busy fails twice before it answers.
    """

    seen: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append(body | {"authorization": self.headers.get("Authorization")})
        rows = [{"index": n, "embedding": [len(text), 1]} for n, text in enumerate(body["input"])]
        answers = {
            "/v1/embeddings": {"data": rows[::-1]},
            "/busy/embeddings": {"data": rows},
            "/short/embeddings": {"data": rows[1:]},
            **ODD,
        }
        down = self.path == "/down/embeddings" or (self.path == "/busy/embeddings" and len(self.seen) < 3)
        self.send_response(503 if down else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Retry-After", "0.01")
        self.end_headers()
        self.wfile.write(json.dumps(answers.get(self.path, {"error": "?"})).encode())

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def endpoint() -> Iterator[Bound]:
    seen: list[dict[str, Any]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Endpoint,), {"seen": seen}))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    server.server_close()


def test_vectors_come_in_the_order_of_the_texts_with_length_one(endpoint: Bound) -> None:
    url, seen = endpoint
    texts = ["x" * length for length in range(1, 201)]
    rows = make_embedder(Settings(embedder=f"{url}/v1#some-model")).embed_passages(texts)
    assert np.allclose(rows[:, 0] / rows[:, 1], range(1, 201))
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert sorted(len(body["input"]) for body in seen) == [8, 32, 32, 32, 32, 32, 32]
    assert {body["model"] for body in seen} == {"some-model"}


def test_key_is_sent_only_to_the_model_server(endpoint: Bound) -> None:
    url, seen = endpoint
    for model_url in (f"{url}/v1", "http://elsewhere/v1"):
        settings = Settings(embedder=f"{url}/v1", model_url=model_url, model_key="secret")  # type: ignore[arg-type]
        make_embedder(settings).embed_query("x")
    sent = {"input": ["x"], "encoding_format": "float"}
    assert seen == [{**sent, "authorization": "Bearer secret"}, {**sent, "authorization": None}]


def test_busy_endpoint_is_retried(endpoint: Bound) -> None:
    url, seen = endpoint
    vector = make_embedder(Settings(embedder=f"{url}/busy")).embed_query("x")
    assert np.allclose(vector, [np.sqrt(0.5)] * 2)
    assert len(seen) == 3


def test_endpoint_that_stays_down_is_given_up(endpoint: Bound) -> None:
    url, seen = endpoint
    with pytest.raises(StoreError, match=r"/down/embeddings fails: .*503"):
        make_embedder(Settings(embedder=f"{url}/down/embeddings")).embed_query("x")
    assert len(seen) == 4


@pytest.mark.nightly
@pytest.mark.parametrize("path", ["other", "short", *(path.split("/")[1] for path in ODD)])
def test_reply_without_valid_vectors_is_refused(endpoint: Bound, path: str) -> None:
    url, _ = endpoint
    with pytest.raises(StoreError, match=rf"{url}/{path}/embeddings .*SLEUTH_EMBEDDER"):
        make_embedder(Settings(embedder=f"{url}/{path}")).embed_query("x")
