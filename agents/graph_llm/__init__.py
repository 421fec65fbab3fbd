"""RAS's graph model: the triples in a prompt, encoded as one token that stands in front of the text."""
