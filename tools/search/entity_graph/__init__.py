"""The entity graph: passages are nodes, a passage that names what another one is about is an edge.

`index` stores the names in texts, `edges` finds edges, `search` ranks by them.
"""
