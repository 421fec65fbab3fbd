"""Model calls of a node: fit the prompt, send it, parse the reply, record the cost."""
