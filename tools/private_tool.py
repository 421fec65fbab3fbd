"""LangChain tools that are traced only by a tracer of their caller."""

from typing import Any

from langchain_core.callbacks.base import Callbacks
from langchain_core.tools import StructuredTool

from sleuth.tools.tracing import traced


class PrivateTool(StructuredTool):
    """Tool that ignores the environment's tracing. `invoke` and `ainvoke` end in `run` and `arun`."""

    def run(self, tool_input: Any, *, callbacks: Callbacks = None, **options: Any) -> Any:  # type: ignore[override]  # noqa: ANN401
        """Run as the base does; `callbacks` is given by name."""
        return super().run(tool_input, callbacks=_untraced(callbacks), **options)

    async def arun(self, tool_input: Any, *, callbacks: Callbacks = None, **options: Any) -> Any:  # type: ignore[override]  # noqa: ANN401
        """Run as the base does; `callbacks` is given by name."""
        return await super().arun(tool_input, callbacks=_untraced(callbacks), **options)


def _untraced(callbacks: Callbacks) -> Callbacks:
    return traced({"callbacks": callbacks}, "off").get("callbacks")
