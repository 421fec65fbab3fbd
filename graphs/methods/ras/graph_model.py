"""The optional graph model of RAS, which encodes a question's graph as a soft token (sections 3.2 and 3.4)."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from sleuth.agents.graph_encoder import is_graph_model, no_graph_model
from sleuth.agents.model import Model
from sleuth.graphs.core import Context, MethodSettings


def _there(folder: str) -> str:
    if folder and not is_graph_model(Path(folder)):
        raise ValueError(no_graph_model(folder))
    return folder


class GraphSettings(MethodSettings):
    """Settings of a method that shows triples to its roles."""

    graph_model: Annotated[str, AfterValidator(_there)] = Field(
        default="", description="folder of a graph model, whose language model is served; empty: triples are text only"
    )

    def model_for(self, model: Model, context: Context) -> Model:
        """Return the model that also reads the graph as a soft token, if `graph_model` names one."""
        if not self.graph_model:
            return model
        return context.graph_models.beside(model, self.graph_model, context.embedder)
