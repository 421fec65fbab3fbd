"""Storage of runs: checkpointers, threads, thread locks and the checkpoint serializer."""
