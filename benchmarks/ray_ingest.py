"""Ingest of PDF files on a local Ray cluster of several workers, and with the readers of this machine, in turns.

    python -m benchmarks.ray_ingest [--files N] [--workers N] [--rounds R] [--embedder NAME]

Each worker is a process of a node of its own with one processor. The start of the cluster is not part of the time. The
processor time of its workers is not measured: that of the worker processes of one reader is used. Needs the extra
`ray`.
"""

import os
from pathlib import Path

from benchmarks.harness import in_own_process
from benchmarks.ingest_workers import measured, run, show

LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}


def compare(folder: Path, workers: int, rounds: int, embedder: str) -> None:
    """Measure in turns, and print."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 100_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        for _ in range(workers - 1):
            cluster.add_node(**node)
        in_own_process(measured, folder, 1, embedder, cluster.address)  # starts the workers
        found: dict[str, list[dict[str, float]]] = {"1 reader": [], "2 readers": [], f"Ray, {workers} workers": []}
        for _ in range(rounds):
            for name, own in found.items():
                if name.startswith("Ray"):
                    there = in_own_process(measured, folder, 1, embedder, cluster.address)
                    own.append({**there, "children": found["1 reader"][-1]["children"]})
                else:
                    own.append(in_own_process(measured, folder, int(name[0]), embedder))
        for name, own in found.items():
            show(name, own)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    os.environ.update(LOOPBACK)
    run(__doc__, compare, workers=3)
