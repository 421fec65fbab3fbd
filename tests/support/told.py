"""Graph models for tests that need no torch: a token names its content."""

from sleuth.agents.graph_encoder import Graph, GraphModels
from sleuth.tools.search.vectors.embedder import Embedder


class Told(GraphModels):
    """A graph's token is its folder, how many sub-queries there are, and how many triples."""

    def token(self, folder: str, embedder: Embedder | None, graph: Graph) -> str | None:
        return f"{folder} {len(graph)} {sum(map(len, graph))}" if graph else None
