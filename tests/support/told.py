"""Graph models for tests that need no torch: a token names its content."""

from sleuth.agents.graph_encoder import Graph, ModelWithGraph


class Told(ModelWithGraph):
    """A graph's token is its folder, how many sub-queries there are, and how many triples."""

    def token(self, graph: Graph) -> str | None:
        return f"{self.folder} {len(graph)} {sum(map(len, graph))}" if graph else None
