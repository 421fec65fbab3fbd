"""RAS: retrieve, structure into triples, and plan the next search."""

from sleuth.graphs.methods.ras.triple_graph import extract_triples, prompt_version

__all__ = ["extract_triples", "prompt_version"]
