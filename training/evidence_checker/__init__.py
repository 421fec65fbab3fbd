"""Training of the evidence checker: examples from public data sets, the model, its training and its measurement."""
