"""Documents, catalogue, indexes and search: everything that needs no language model."""
