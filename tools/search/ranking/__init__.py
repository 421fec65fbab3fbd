"""The trained ranking of graph search: `features` of the candidates, `trees` over them."""

from sleuth.tools.search.ranking.features import VERSION, matrix
from sleuth.tools.search.ranking.ranking import MODEL, load, rank
from sleuth.tools.search.ranking.trees import Trees, UnusableModel

__all__ = ["MODEL", "VERSION", "Trees", "UnusableModel", "load", "matrix", "rank"]
