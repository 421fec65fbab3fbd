"""Graphs whose runs are traced only if a caller or the setting `tracing` asks for it."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateUpdate

from sleuth.tools.tracing.callbacks import traced


class PrivateCompiled(CompiledStateGraph[Any, Any, Any, Any]):
    """Compiled graph that ignores the environment's tracing. All its other methods call one of these."""

    def astream(self, input: object, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:  # noqa: ANN401
        """Run the graph with the tracing that its context allows."""
        return super().astream(input, self._traced(config, options.get("context")), **options)

    def stream(self, input: object, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:  # noqa: ANN401
        """Run the graph with the tracing that its context allows."""
        return super().stream(input, self._traced(config, options.get("context")), **options)

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Update the state, traced only by a tracer of the caller."""
        return await super().abulk_update_state(self._traced(config), supersteps)

    def bulk_update_state(self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        """Update the state, traced only by a tracer of the caller."""
        return super().bulk_update_state(self._traced(config), supersteps)

    def _traced(self, config: RunnableConfig | None, context: object = None) -> RunnableConfig:
        texts = getattr(context, "trace_texts", False)
        return traced(config, getattr(context, "tracing", "off"), bound=self.config, texts=texts)


class PrivateGraph(StateGraph[Any, Any, Any, Any]):
    """State machine that compiles to a `PrivateCompiled`."""

    def __init__(self, graph: StateGraph[Any, Any, Any, Any]) -> None:
        """Copy the nodes and edges of `graph`."""
        self.__dict__.update(graph.__dict__)

    def compile(self, *arguments: Any, **options: Any) -> PrivateCompiled:  # noqa: ANN401 - those of the base
        """Compile as the base does."""
        return PrivateCompiled(**vars(super().compile(*arguments, **options)))
