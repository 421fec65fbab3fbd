"""The trained ranking of graph search: `features` of the candidates, `trees` over them."""
