"""SQL catalogue, archive of texts, triples, and locks on files."""
