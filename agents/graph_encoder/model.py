"""Graph models at inference: each request gets the soft token of the graph in its prompt."""

import asyncio
import base64
import io
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sleuth.agents.graph_encoder.encoder import Encoder, Graph, graph_texts, load, read_graph
from sleuth.agents.model import Message, Model, Reply, Request
from sleuth.tools.errors import UsageError
from sleuth.tools.search.vectors import Embedder

TOKENS = 2
"""Tokens added to a prompt: the soft token, and the end of its line."""


class GraphModels:
    """Graph models by their folders, each loaded at its first use and kept."""

    def __init__(self) -> None:
        self._loaded: dict[str, tuple[Encoder, str]] = {}
        self._lock = threading.Lock()

    def wrap(self, model: Model, folder: str, embedder: Embedder | None) -> Model:
        """Return a model whose requests carry the tokens of the graph model in a folder."""
        return _WithGraphToken(model, partial(self.token, folder, embedder))

    def token(self, folder: str, embedder: Embedder | None, graph: Graph) -> str | None:
        """Return a graph's soft token, base64 of a saved tensor of shape (1, hidden); None for an empty graph. Blocks.

        Raises:
            UsageError: the folder has no graph model, or one that was trained with another embedder.
            MissingExtra: the `graph` extra is not installed.
        """
        with self._lock:
            if folder not in self._loaded:
                self._loaded[folder] = load(Path(folder))
            encoder, trained_with = self._loaded[folder]
            if embedder is None or embedder.name != trained_with:
                now = embedder.name if embedder else "none"
                raise UsageError(
                    f"The graph model in {folder} was trained with the embedder {trained_with}, and SLEUTH_EMBEDDER is "
                    f"{now}: set it to {trained_with} for a collection of its own, or train the graph model again."
                )
            return _packed(encoder, embedder, graph) if graph else None


def _packed(encoder: Encoder, embedder: Embedder, graph: Graph) -> str:
    import torch

    texts = graph_texts([graph])
    rows = embedder.embed_passages(texts)
    if rows.shape[1] != encoder.shape.width:
        raise UsageError(
            f"The embedder {embedder.name} gives vectors of {rows.shape[1]} numbers, and the graph model was trained "
            f"with vectors of {encoder.shape.width}: train it again."
        )
    with torch.inference_mode():
        token = encoder.tokens([graph], dict(zip(texts, rows, strict=True)))
    file = io.BytesIO()
    torch.save(token.clone(), file)
    return base64.b64encode(file.getvalue()).decode()


@dataclass(frozen=True, slots=True)
class _WithGraphToken:
    """A `Model` whose requests carry the soft token of the triples in their prompts, if there are any."""

    model: Model
    token: Callable[[Graph], str | None]

    @property
    def context_window(self) -> int:
        """That of the wrapped model."""
        return self.model.context_window

    async def call(self, request: Request) -> Reply:
        """Answer one request. The graph model is always loaded, so that its errors appear before any reply."""
        token = await asyncio.to_thread(self.token, read_graph(request.messages))
        return await self.model.call(replace(request, soft_token=token))

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the wrapped model's count and the tokens of the graph."""
        return TOKENS + await self.model.count_tokens(messages, role=role)
