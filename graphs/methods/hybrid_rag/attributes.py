"""What a question is about, and whether its answer changes with time, as the hybrid system has it predicted."""

from typing_extensions import TypedDict

from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles.judging import InContextPredictor
from sleuth.graphs.methods.hybrid_rag.settings import Settings
from sleuth.tools.errors import BadReply
from sleuth.tools.sources.question_attributes import Domain, Predictor
from sleuth.tools.sources.question_attributes.svm import TRAINING


class Predicted(TypedDict):
    """The attributes of a question (section 4.2)."""

    domain: Domain
    dynamic: bool


async def predicted(
    asking: ModelCaller, question: str, predictor: Predictor | None, settings: Settings
) -> Predicted | None:
    """The attributes by a predictor, without one by votes of the model; None where these cannot be read.

    That the SVM is wanted and not there is a warning.
    """
    if predictor is None and settings.predictor == "svm":
        why = "no SVM goes with the embedder: the model votes on the question's attributes"
        asking.warn(f"{why} (`{TRAINING}` trains one)")
    try:
        found = await (predictor or InContextPredictor(asking, samples=settings.votes)).predict(question)
    except BadReply as error:
        asking.warn(f"{error} The question counts as static.")
        return None
    return Predicted(domain=found.domain, dynamic=found.dynamic)
