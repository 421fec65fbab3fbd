"""PAR-RAG: plan, then act on and review each step."""

from sleuth.graphs.methods.par_rag.steps import Plan, Step, number_steps, plan_steps

__all__ = ["Plan", "Step", "number_steps", "plan_steps"]
