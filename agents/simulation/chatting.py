"""The roles that read a conversation: they know what its person is after, which is the gold's question."""

from sleuth.agents import rewriter
from sleuth.agents.simulation.planning import off_course
from sleuth.agents.simulation.said import Said, said
from sleuth.agents.simulation.scene import Scene
from sleuth.agents.simulation.wording import names, says


def rewrite(scene: Scene) -> Said:
    """REWRITE: the gold's question, as far as what was said names all that it does; else the message as it is."""
    message = str(scene.given["question"])
    if scene.errs("wrong-question"):
        return said(rewriter.Rewritten(question=off_course(scene)))
    spoken = " ".join([message, *(turn["text"] for turn in scene.given["turns"])])
    told = all(says(spoken, name) for name in names(scene.gold.question))
    return said(rewriter.Rewritten(question=(scene.gold.question if told else message)[:500]))
