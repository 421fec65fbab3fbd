"""RAS: retrieve, structure into triples, and plan the next search."""

from sleuth.graphs.methods.ras.triple_graph import extract, prompt_version

__all__ = ["extract", "prompt_version"]
