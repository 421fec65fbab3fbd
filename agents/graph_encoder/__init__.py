"""RAS's graph model: the triples in a prompt, encoded as one token that stands in front of the text."""

from sleuth.agents.graph_encoder.encoder import Encoder, Graph, Shape, first_user, graph_of, texts_of
from sleuth.agents.graph_encoder.folder import is_graph_model, load, no_graph_model, save
from sleuth.agents.graph_encoder.model import GraphModels

__all__ = [
    "Encoder",
    "Graph",
    "GraphModels",
    "Shape",
    "first_user",
    "graph_of",
    "is_graph_model",
    "load",
    "no_graph_model",
    "save",
    "texts_of",
]
