"""The roles that a model plays: typed input, prompt and typed output, one module each."""
