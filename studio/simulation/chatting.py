"""Simulated roles of a chat: the user wants an answer to the gold's question."""

from sleuth.agents.roles.conversation import INTENTS, AskedBack, Intent, Rewritten
from sleuth.studio.simulation.judging import label
from sleuth.studio.simulation.planning import off_course
from sleuth.studio.simulation.reply import SimulatedReply, structured_reply
from sleuth.studio.simulation.request_view import RequestView
from sleuth.studio.simulation.wording import content_words, find_names, mentions


def route(view: RequestView) -> SimulatedReply:
    """ROUTE: by the names of the gold's question in the message and in the conversation."""
    return label(view, _kind(view), INTENTS)


def _kind(view: RequestView) -> Intent:
    if not content_words(view.question) & content_words(view.gold.question):
        return "small talk"
    if _names_all(view, view.question):
        return "question"
    return "follow-up" if _names_all(view, _conversation(view)) else "ambiguous"


def rewrite(view: RequestView) -> SimulatedReply:
    """REWRITE: the gold's question if the conversation contains its names; otherwise the message unchanged."""
    if view.errs("wrong-question"):
        return structured_reply(Rewritten(question=off_course(view)))
    question = view.gold.question if _names_all(view, _conversation(view)) else view.question
    return structured_reply(Rewritten(question=question[:500]))


def ask_back(view: RequestView) -> SimulatedReply:
    """ASK_BACK: offer the names in the gold's question."""
    return structured_reply(
        AskedBack(question="What do you mean?", options=[name[:120] for name in find_names(view.gold.question)][:4])
    )


def _conversation(view: RequestView) -> str:
    return " ".join([*(turn["text"] for turn in view.given["turns"]), view.question])


def _names_all(view: RequestView, text: str) -> bool:
    return all(mentions(text, name) for name in find_names(view.gold.question))
