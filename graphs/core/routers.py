"""Routers that several methods share. A node whose calls the budget cannot pay for sets `halted`."""

from typing import Literal

from sleuth.graphs.core.state import RunState


def retrieve_unless_settled(state: RunState) -> Literal["retrieve", "answer"]:
    """Route to `answer` if a note from an earlier run may already answer the question, else to `retrieve`."""
    return "answer" if state.is_settled else "retrieve"


def retrieve_until_verdict(state: RunState) -> Literal["retrieve", "__end__"]:
    """Route to `retrieve` while `answer` has not ended the run."""
    return "__end__" if state.verdict else "retrieve"


def plan_unless_halted(state: RunState) -> Literal["plan", "answer"]:
    """Route to `plan`, or to `answer` if the budget is used up."""
    return "answer" if state.halted else "plan"
