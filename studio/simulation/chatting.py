"""The roles that read a conversation: they know what its person is after, which is the gold's question."""

from sleuth.agents.roles import conversation
from sleuth.agents.roles.conversation import INTENTS, AskedBack, Intent
from sleuth.studio.simulation.judging import filed
from sleuth.studio.simulation.planning import off_course
from sleuth.studio.simulation.reply import SimulatedReply, structured
from sleuth.studio.simulation.request_view import RequestView
from sleuth.studio.simulation.wording import content, names, says


def route(view: RequestView) -> SimulatedReply:
    """ROUTE: by what the message and the conversation name of the gold's question; small talk asks for nothing."""
    return filed(view, _kind(view), INTENTS)


def _kind(view: RequestView) -> Intent:
    if not content(view.question) & content(view.gold.question):
        return "small talk"
    if _told(view, view.question):
        return "question"
    return "follow-up" if _told(view, _spoken(view)) else "ambiguous"


def rewrite(view: RequestView) -> SimulatedReply:
    """REWRITE: the gold's question, as far as what was said names all that it does; else the message as it is."""
    if view.errs("wrong-question"):
        return structured(conversation.Rewritten(question=off_course(view)))
    question = view.gold.question if _told(view, _spoken(view)) else view.question
    return structured(conversation.Rewritten(question=question[:500]))


def reply(_: RequestView) -> SimulatedReply:
    """REPLY."""
    return SimulatedReply(text="Hello! Ask me something about your documents.")


def ask_back(view: RequestView) -> SimulatedReply:
    """ASK_BACK: which of the names that the gold's question has."""
    return structured(
        AskedBack(question="What do you mean?", options=[name[:120] for name in names(view.gold.question)][:4])
    )


def _spoken(view: RequestView) -> str:
    return " ".join([*(turn["text"] for turn in view.given["turns"]), view.question])


def _told(view: RequestView, text: str) -> bool:
    return all(says(text, name) for name in names(view.gold.question))
