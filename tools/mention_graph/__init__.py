"""The mention graph: passages are nodes, a passage that names what another one is about is an edge.

`names` and `spans` read names out of texts, `index` keeps them, `edges` finds edges, `search` ranks by them.
"""
