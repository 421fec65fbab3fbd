"""One file per method, and what a durable run needs: state, checkpoints, history."""
