"""PAR-RAG: plan, then act on and review each step."""

from sleuth.graphs.methods.par_rag.steps import Plan, Step, numbered, plan_steps

__all__ = ["Plan", "Step", "numbered", "plan_steps"]
