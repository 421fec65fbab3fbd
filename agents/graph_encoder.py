"""Optional graph model of RAS: the triples in a prompt, encoded as one soft token in front of the text.

Source: Jiang et al., equation 5 and D.2. The triples of each sub-query are a graph: subjects and objects are its nodes,
predicates its edges, all represented by the vectors of their texts. The nodes of the last layer of a graph transformer
are averaged over each graph, then over the graphs, and projected. An encoder is saved in the folder of its language
model's adapter. A method uses it through `MethodSettings.model_for`; torch and torch_geometric are imported when a
model is loaded.
"""

import asyncio
import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sleuth.agents.formatting import parse_facts
from sleuth.agents.model import Message, Model, Reply, Request
from sleuth.tools.errors import UsageError, extra
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.types import Triple

if TYPE_CHECKING:
    import torch

Graph = Sequence[Sequence[Triple]]
"""Triples by sub-query."""

METADATA, WEIGHTS = "graph.json", "graph.safetensors"
TRAINING = "python -m training.graph_llm"

TOKENS = 2
"""Tokens added to a prompt: the soft token, and the end of its line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Sizes: the texts' vectors (`width`), the language model's embeddings (`hidden`), and the layers between."""

    width: int
    hidden: int
    layers: int = 2
    heads: int = 4
    projector: int = 1024


def read_graph(messages: Sequence[Message]) -> Graph:
    """Return the triples in a prompt. Training and inference read them from there, so both see the same graph."""
    return parse_facts(first_user_message(messages)["content"])


def first_user_message(messages: Sequence[Message]) -> Message:
    """Return the message that the token precedes: after the instructions, which servers cache."""
    return next(message for message in messages if message["role"] == "user")


def graph_texts(graphs: Sequence[Graph]) -> list[str]:
    """Return the texts to embed, each once."""
    return list(dict.fromkeys(part for graph in graphs for triples in graph for triple in triples for part in triple))


class Encoder:
    """The layers and the projector, in float32."""

    def __init__(self, shape: Shape, *, scale: float = 1.0) -> None:
        """Initialize the weights at random.

        Args:
            shape: the sizes.
            scale: the standard deviation of the language model's token embeddings.

        Raises:
            MissingExtra: the `graph` extra is not installed.
        """
        with extra("graph", "A graph model"):
            from torch import nn
            from torch_geometric.nn import TransformerConv
        self.shape = shape
        inner = {"heads": shape.heads, "edge_dim": shape.width, "beta": True}
        layers = [TransformerConv(shape.width, shape.width // shape.heads, **inner) for _ in range(shape.layers)]
        norms = [nn.LayerNorm(shape.width) for _ in layers]
        last = nn.LayerNorm(shape.hidden)
        nn.init.constant_(last.weight, scale)
        projector = nn.Sequential(
            nn.Linear(shape.width, shape.projector), nn.GELU(), nn.Linear(shape.projector, shape.hidden), last
        )
        parts: dict[str, Any] = {"layers": nn.ModuleList(layers), "norms": nn.ModuleList(norms), "projector": projector}
        self.module: Any = nn.ModuleDict(parts)

    def tokens(self, graphs: Sequence[Graph], vectors: Mapping[str, npt.NDArray[np.float32]]) -> "torch.Tensor":
        """Return the soft tokens, of shape (graphs, hidden); every graph has at least one triple.

        `vectors` has the embedding of each text, of shape (width,).
        """
        import torch
        from torch_geometric.data import Batch, Data
        from torch_geometric.nn import global_mean_pool

        parts = []
        for triples in (triples for graph in graphs for triples in graph):
            names: dict[str, int] = {}
            ends = [[names.setdefault(name, len(names)) for name in (triple[0], triple[2])] for triple in triples]
            texts = list(names), [predicate for _, predicate, _ in triples]
            nodes, edges = (torch.from_numpy(np.stack([vectors[text] for text in part])) for part in texts)
            parts.append(Data(x=nodes, edge_index=torch.tensor(ends).T, edge_attr=edges))
        device = next(self.module.parameters()).device
        batch = Batch.from_data_list(parts).to(device)
        nodes = batch.x
        for layer, norm in zip(self.module["layers"], self.module["norms"], strict=True):
            nodes = torch.relu(norm(layer(nodes, batch.edge_index, batch.edge_attr)))
        graph_of = torch.tensor([at for at, graph in enumerate(graphs) for _ in graph], device=device)
        token: torch.Tensor = self.module["projector"](global_mean_pool(global_mean_pool(nodes, batch.batch), graph_of))
        return token


def is_graph_model(folder: Path) -> bool:
    """Return whether a folder contains a graph model."""
    return (folder / METADATA).is_file() and (folder / WEIGHTS).is_file()


def describe_missing(folder: str) -> str:
    """Return the message for a folder without a graph model."""
    return f"{folder} holds no graph model ({METADATA} and {WEIGHTS}); `{TRAINING}` in a clone of sleuth makes one"


@cache
def load(folder: Path) -> tuple[Encoder, str]:
    """Return the encoder in a folder, and the name of its embedder; each folder is read once.

    Raises:
        UsageError: the folder has no graph model, or a damaged one.
        MissingExtra: the `graph` extra is not installed.
    """
    if not is_graph_model(folder):
        raise UsageError(f"{describe_missing(str(folder))}.")
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        metadata = json.loads((folder / METADATA).read_text(encoding="utf-8"))
        encoder, embedder = Encoder(Shape(**metadata["shape"])), str(metadata["embedder"])
        encoder.module.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"The graph model in {folder} cannot be read ({reason}): make it again.") from None
    encoder.module.eval()
    return encoder, embedder


@dataclass(frozen=True, slots=True)
class ModelWithGraph:
    """A `Model` whose requests carry the soft token of the triples in their prompts, if there are any.

    Usage:

        model = ModelWithGraph(client, "runs/adapter", embedder)
        reply = await model.call(request)

    Attributes:
        model: answers the requests.
        folder: that of the graph model.
        embedder: embeds the texts of the triples.
    """

    model: Model
    folder: str
    embedder: Embedder | None

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

    def token(self, graph: Graph) -> str | None:
        """Return a graph's soft token, base64 of a saved tensor of shape (1, hidden); None for an empty graph. Blocks.

        Raises:
            UsageError: the folder has no graph model, or one that was trained with another embedder.
            MissingExtra: the `graph` extra is not installed.
        """
        encoder, trained_with = load(Path(self.folder))
        if self.embedder is None or self.embedder.name != trained_with:
            now = self.embedder.name if self.embedder else "none"
            raise UsageError(
                f"The graph model in {self.folder} was trained with the embedder {trained_with}, and SLEUTH_EMBEDDER "
                f"is {now}: set it to {trained_with} for a collection of its own, or train the graph model again."
            )
        if not graph:
            return None
        import torch

        texts = graph_texts([graph])
        rows = self.embedder.embed_passages(texts)
        if rows.shape[1] != encoder.shape.width:
            raise UsageError(
                f"The embedder {trained_with} gives vectors of {rows.shape[1]} numbers, and the graph model was "
                f"trained with vectors of {encoder.shape.width}: train it again."
            )
        with torch.inference_mode():
            token = encoder.tokens([graph], dict(zip(texts, rows, strict=True)))
        file = io.BytesIO()
        torch.save(token.clone(), file)
        return base64.b64encode(file.getvalue()).decode()
