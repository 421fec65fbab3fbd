"""RetroRAG: collect and revise evidence until the answer is consistent."""

from sleuth.graphs.methods.retro_rag.evidence import summarize_removed

__all__ = ["summarize_removed"]
