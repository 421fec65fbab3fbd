"""Roles of a chat: intent, question rewriting and small talk."""

from sleuth.agents.roles.conversation.chat_responder import AskedBack
from sleuth.agents.roles.conversation.intent_classifier import KINDS, Kind
from sleuth.agents.roles.conversation.question_rewriter import REWRITE, Rewritten

__all__ = ["KINDS", "REWRITE", "AskedBack", "Kind", "Rewritten"]
