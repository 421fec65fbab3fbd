"""Chat about the documents: a graph whose turns run a method when a message needs one."""

from sleuth.graphs.chat.plan_approval import decision_in, in_words
from sleuth.graphs.chat.question_rewriting import Rewriting, rewritten

__all__ = ["Rewriting", "decision_in", "in_words", "rewritten"]
