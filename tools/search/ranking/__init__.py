"""The trained ranking of graph search: `features` of the candidates, `trees` over them."""

from sleuth.tools.search.ranking.features import VERSION, matrix
from sleuth.tools.search.ranking.trained import MODEL, Trees, load, rank

__all__ = ["MODEL", "VERSION", "Trees", "load", "matrix", "rank"]
