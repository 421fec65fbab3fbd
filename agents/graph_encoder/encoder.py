"""A question's graph as one token: a graph transformer, pooled and projected (Jiang et al., equation 5 and D.2).

Each sub-query's triples are a graph of their own: subjects and objects are its nodes, predicates its edges, all of them
as vectors of their texts. What two layers make of the nodes is averaged over each graph, then over the graphs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sleuth.agents.formatting import parse_facts
from sleuth.agents.model import Message
from sleuth.tools.optional_imports import extra
from sleuth.tools.storage import Triple

if TYPE_CHECKING:
    import torch

Graph = Sequence[Sequence[Triple]]
"""Triples by sub-query."""
Vectors = Mapping[str, npt.NDArray[np.float32]]
"""Texts as an embedder has them, of shape (width,)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Sizes: of the texts' vectors (`width`), of the language model's tokens (`hidden`), and of what lies between."""

    width: int
    hidden: int
    layers: int = 2
    heads: int = 4
    projector: int = 1024


def graph_of(messages: Sequence[Message]) -> Graph:
    """The triples that a prompt shows: the same for training and in use, as nothing else says what they are."""
    return parse_facts(first_user(messages)["content"])


def first_user(messages: Sequence[Message]) -> Message:
    """The message that the token stands in front of: behind the instructions, which servers keep in their cache."""
    return next(message for message in messages if message["role"] == "user")


def texts_of(graphs: Sequence[Graph]) -> list[str]:
    """All that has to be embedded, each text once."""
    return list(dict.fromkeys(part for graph in graphs for triples in graph for triple in triples for part in triple))


class Encoder:
    """The layers, and the projector behind them, in float32."""

    def __init__(self, shape: Shape, *, scale: float = 1.0) -> None:
        """Weights drawn at random; `scale` is the standard deviation of the language model's own token embeddings.

        Raises:
            MissingExtra: the library for graphs is not installed.
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

    def tokens(self, graphs: Sequence[Graph], vectors: Vectors) -> "torch.Tensor":
        """One for each graph, of shape (graphs, hidden); every graph has a triple."""
        import torch
        from torch_geometric.nn import global_mean_pool

        union = _union(graphs)
        device = next(self.module.parameters()).device
        nodes, edges = (
            torch.from_numpy(np.stack([vectors[text] for text in texts])).to(device)
            for texts in (union.nodes, union.edges)
        )
        ends = torch.tensor(union.ends, device=device).T
        for layer, norm in zip(self.module["layers"], self.module["norms"], strict=True):
            nodes = torch.relu(norm(layer(nodes, ends, edges)))
        subgraphs = global_mean_pool(nodes, torch.tensor(union.subgraph_of, device=device))
        pooled = global_mean_pool(subgraphs, torch.tensor(union.graph_of, device=device))
        token: torch.Tensor = self.module["projector"](pooled)
        return token


@dataclass(frozen=True, kw_only=True, slots=True)
class _Union:
    """Graphs side by side: texts of nodes and edges, each edge's two nodes, each node's subgraph, each one's graph."""

    nodes: list[str]
    edges: list[str]
    ends: list[tuple[int, int]]
    subgraph_of: list[int]
    graph_of: list[int]


def _union(graphs: Sequence[Graph]) -> _Union:
    found = _Union(nodes=[], edges=[], ends=[], subgraph_of=[], graph_of=[])
    for at, graph in enumerate(graphs):
        for triples in graph:
            places: dict[str, int] = {}
            for subject, predicate, object in triples:
                ends = [places.setdefault(name, len(found.nodes) + len(places)) for name in (subject, object)]
                found.edges.append(predicate)
                found.ends.append((ends[0], ends[1]))
            found.nodes.extend(places)
            found.subgraph_of.extend([len(found.graph_of)] * len(places))
            found.graph_of.append(at)
    return found
