"""State, context, budget and answer of a run, and the `@node` decorator."""
