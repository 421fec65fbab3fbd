"""Work on a Ray cluster: reading of files and embedding of passages. Needs the extra `ray`."""

from sleuth.tools.cluster.embedding import RayEmbedder
from sleuth.tools.cluster.reading import RayReaders

__all__ = ["RayEmbedder", "RayReaders"]
