"""Where a method's roles are also told a question's graph as a token, by a graph model (RAS, sections 3.2 and 3.4)."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from sleuth.agents.graph_encoder import describe_missing, is_graph_model
from sleuth.agents.model import Model
from sleuth.graphs.core import Context, MethodSettings


def _there(folder: str) -> str:
    if folder and not is_graph_model(Path(folder)):
        raise ValueError(describe_missing(folder))
    return folder


class GraphSettings(MethodSettings):
    """Of a method that shows its roles triples."""

    graph_model: Annotated[str, AfterValidator(_there)] = Field(
        default="", description="folder of a graph model, whose language model is served; empty: triples are text only"
    )

    def model_for(self, model: Model, context: Context) -> Model:
        """Return the model that is also shown the graph as a token, if `graph_model` names one."""
        if not self.graph_model:
            return model
        return context.graph_models.wrap(model, self.graph_model, context.embedder)
