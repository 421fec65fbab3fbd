"""Sources other than the collection: calculator, web pages, knowledge graph."""

from sleuth.tools.sources.calculator import NotCalculable, calculate, names

__all__ = ["NotCalculable", "calculate", "names"]
