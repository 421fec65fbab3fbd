"""The roles that read a conversation: they know what its person is after, which is the gold's question."""

from sleuth.agents import rewriter
from sleuth.agents.host import AskedBack
from sleuth.agents.router import KINDS, Kind
from sleuth.agents.simulation.judging import filed
from sleuth.agents.simulation.planning import off_course
from sleuth.agents.simulation.said import Said, said
from sleuth.agents.simulation.scene import Scene
from sleuth.agents.simulation.wording import content, names, says


def route(scene: Scene) -> Said:
    """ROUTE: by what the message and the conversation name of the gold's question; small talk asks for nothing."""
    return filed(scene, _kind(scene), KINDS)


def _kind(scene: Scene) -> Kind:
    if not content(scene.question) & content(scene.gold.question):
        return "small talk"
    if _told(scene, scene.question):
        return "question"
    return "follow-up" if _told(scene, _spoken(scene)) else "ambiguous"


def rewrite(scene: Scene) -> Said:
    """REWRITE: the gold's question, as far as what was said names all that it does; else the message as it is."""
    if scene.errs("wrong-question"):
        return said(rewriter.Rewritten(question=off_course(scene)))
    question = scene.gold.question if _told(scene, _spoken(scene)) else scene.question
    return said(rewriter.Rewritten(question=question[:500]))


def reply(_: Scene) -> Said:
    """REPLY."""
    return Said(text="Hello! Ask me something about your documents.")


def ask_back(scene: Scene) -> Said:
    """ASK_BACK: which of the names that the gold's question has."""
    return said(
        AskedBack(question="What do you mean?", options=[name[:120] for name in names(scene.gold.question)][:4])
    )


def _spoken(scene: Scene) -> str:
    return " ".join([*(turn["text"] for turn in scene.given["turns"]), scene.question])


def _told(scene: Scene, text: str) -> bool:
    return all(says(text, name) for name in names(scene.gold.question))
