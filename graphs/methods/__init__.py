"""The published methods, one package each; `graph.py` has state, nodes, routers and wiring."""
