"""Optional graph model of RAS: the triples in a prompt, encoded as one soft token in front of the text.

A method uses it through `MethodSettings.model_for`; torch and torch_geometric are imported when a model is loaded.
"""

from sleuth.agents.graph_encoder.encoder import (
    Encoder,
    Graph,
    Shape,
    describe_missing,
    first_user_message,
    graph_texts,
    is_graph_model,
    load,
    read_graph,
    save,
)
from sleuth.agents.graph_encoder.model import GraphModels

__all__ = [
    "Encoder",
    "Graph",
    "GraphModels",
    "Shape",
    "describe_missing",
    "first_user_message",
    "graph_texts",
    "is_graph_model",
    "load",
    "read_graph",
    "save",
]
