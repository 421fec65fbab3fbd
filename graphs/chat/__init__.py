"""Chat about the documents: a graph whose turns run a method when a message needs one."""

from sleuth.graphs.chat.plan_approval import describe_request, parse_typed_decision
from sleuth.graphs.chat.question_rewriting import RewrittenQuestion, rewrite_question

__all__ = ["RewrittenQuestion", "describe_request", "parse_typed_decision", "rewrite_question"]
