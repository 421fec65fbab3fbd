"""PAR-RAG: plan, then act on and review each step."""
