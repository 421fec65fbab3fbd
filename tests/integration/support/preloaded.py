"""Child processes that need not import what takes seconds: they are forked from a server that has."""

import multiprocessing

FORKS = multiprocessing.get_context("forkserver")
# What is imported here, a child need not import. (The other modules of this folder are not on the fork server's path.)
FORKS.set_forkserver_preload(
    ["sleuth.studio.client.sleuth", "chromadb", "tantivy", "openai", "langgraph.checkpoint.postgres.aio"]
)
