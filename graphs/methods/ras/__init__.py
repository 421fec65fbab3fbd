"""RAS: retrieve, structure into triples, and plan the next search."""
