"""The roles, grouped by their work: each has an input, an output and a prompt of the same name in `prompts/`."""
