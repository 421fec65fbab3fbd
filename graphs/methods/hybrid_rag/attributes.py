"""Topic of a question, and the rate at which its answer changes, as the hybrid system predicts them."""

from typing_extensions import TypedDict

from sleuth.agents.model_calls import Desk
from sleuth.agents.roles.judging import InContextPredictor
from sleuth.graphs.methods.hybrid_rag.settings import Settings
from sleuth.tools.errors import BadReply
from sleuth.tools.sources.question_attributes import Domain, Predictor
from sleuth.tools.sources.question_attributes.svm import TRAINING


class PredictedAttributes(TypedDict):
    """The attributes of a question (section 4.2)."""

    domain: Domain
    dynamic: bool


async def predict_attributes(
    asking: Desk, question: str, predictor: Predictor | None, settings: Settings
) -> PredictedAttributes | None:
    """Predict the attributes with a predictor, or by votes of the model; None if the votes cannot be parsed.

    A configured SVM that is absent is a warning.
    """
    if predictor is None and settings.predictor == "svm":
        why = "there is no SVM for the embedder: the model votes on the question's attributes"
        asking.warn(f"{why} (`{TRAINING}` trains one)")
    try:
        found = await (predictor or InContextPredictor(asking, samples=settings.votes)).predict(question)
    except BadReply as error:
        asking.warn(f"{error} The question counts as static.")
        return None
    return PredictedAttributes(domain=found.domain, dynamic=found.dynamic)
