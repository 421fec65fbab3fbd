"""Work on a Ray cluster: reading of files, analysis and embedding of passages. Needs the extra `ray`."""

from sleuth.tools.collection.ray_cluster.connection import RETRIES, Connect, cluster_failed, connect, processors
from sleuth.tools.collection.ray_cluster.embedder import RayEmbedder
from sleuth.tools.collection.ray_cluster.workers import RayWorkers

__all__ = ["RETRIES", "Connect", "RayEmbedder", "RayWorkers", "cluster_failed", "connect", "processors"]
