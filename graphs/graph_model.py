"""Where a method's roles are also told a question's graph as a token, by a graph model (RAS, sections 3.2 and 3.4)."""

from pathlib import Path
from typing import Annotated

from langgraph.runtime import Runtime
from pydantic import AfterValidator, Field

from sleuth.agents.desk import Desk
from sleuth.agents.graph_llm.folder import is_graph_model, no_graph_model
from sleuth.graphs import state
from sleuth.graphs.state import Context, MethodSettings, RunState, settings_of


def _there(folder: str) -> str:
    if folder and not is_graph_model(Path(folder)):
        raise ValueError(no_graph_model(folder))
    return folder


class GraphSettings(MethodSettings):
    """Of a method that shows its roles triples."""

    graph_model: Annotated[str, AfterValidator(_there)] = Field(
        default="", description="folder of a graph model, whose language model is served; empty: triples are text only"
    )


def desk(run: RunState, runtime: Runtime[Context]) -> Desk:
    """As `state.desk`, with the graph model of the settings, where they name one."""
    asking, context = state.desk(run, runtime), runtime.context
    if folder := settings_of(runtime, GraphSettings).graph_model:
        asking.model = context.graph_models.beside(asking.model, folder, context.embedder)
    return asking
