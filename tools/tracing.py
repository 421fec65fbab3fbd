"""Tracing of runs by LangSmith: off unless a setting or the caller asks for it.

langchain-core adds a LangSmith tracer to every run when one of `VARIABLES` is set, unless the run's callbacks contain a
tracer already. All other runs get an `Untraced` tracer, which sends nothing. Nothing global changes,
so an application that embeds sleuth keeps its own tracing.
"""

import logging
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.callbacks.base import Callbacks
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import StructuredTool
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.context import tracing_v2_callback_var
from langchain_core.tracers.langchain import LangChainTracer
from langsmith import get_tracing_context

from sleuth.tools.settings import Tracing, tracing_variables

_log = logging.getLogger(__name__)


class Untraced(LangChainTracer):
    """Tracer that receives no event and sends nothing. It occupies the place of the one from the environment."""

    ignore_llm = ignore_chat_model = ignore_chain = ignore_agent = ignore_retriever = True
    ignore_retry = ignore_custom_event = True

    def __init__(self) -> None:
        """Skip the parent's constructor, which creates a LangSmith client."""
        BaseTracer.__init__(self)

    def copy_with_metadata_defaults(
        self, *, metadata: Mapping[str, str] | None = None, tags: list[str] | None = None
    ) -> "Untraced":
        """Return itself: there is nothing to add metadata to."""
        return self


def traced(config: RunnableConfig | None, tracing: Tracing, *, bound: RunnableConfig | None = None) -> RunnableConfig:
    """Return the config of a run with the tracer that applies to it.

    Args:
        config: the config that the run is called with.
        tracing: the setting. It applies where the caller has not chosen.
        bound: the config that is bound to the graph, if any.
    """
    configs = (config, bound, var_child_runnable_config.get())
    callbacks = [each.get("callbacks") for each in configs if each]
    if _is_decided(callbacks, tracing):
        return config or {}
    if tracing == "off":
        _warn_of_ignored_variables()
    tracer = LangChainTracer(client=get_tracing_context()["client"]) if tracing == "langsmith" else Untraced()
    given = next((each for each in callbacks if each), None)
    return {**(config or {}), "callbacks": _with(given, tracer)}


class PrivateTool(StructuredTool):
    """Tool that ignores the environment's tracing. `invoke` and `ainvoke` end in `run` and `arun`."""

    def run(self, tool_input: Any, *, callbacks: Callbacks = None, **options: Any) -> Any:  # type: ignore[override]  # noqa: ANN401
        """Run as the base does; `callbacks` is given by name."""
        return super().run(tool_input, callbacks=traced({"callbacks": callbacks}, "off").get("callbacks"), **options)

    async def arun(self, tool_input: Any, *, callbacks: Callbacks = None, **options: Any) -> Any:  # type: ignore[override]  # noqa: ANN401
        """Run as the base does; `callbacks` is given by name."""
        return await super().arun(
            tool_input, callbacks=traced({"callbacks": callbacks}, "off").get("callbacks"), **options
        )


def _is_decided(callbacks: list[Callbacks], tracing: Tracing) -> bool:
    """Return whether a run around this one, or the caller's code, has decided about tracing."""
    tracers = [each for given in callbacks for each in _handlers(given) if isinstance(each, LangChainTracer)]
    context = get_tracing_context()
    return (
        any(tracing == "off" or not isinstance(tracer, Untraced) for tracer in tracers)
        or tracing_v2_callback_var.get() is not None
        or context["parent"] is not None
        or context["enabled"] is not None
    )


def _handlers(callbacks: Callbacks) -> list[object]:
    if isinstance(callbacks, BaseCallbackManager):
        return [*callbacks.handlers, *callbacks.inheritable_handlers]
    return list(callbacks or [])


def _with(callbacks: Callbacks, tracer: LangChainTracer) -> Callbacks:
    if isinstance(callbacks, BaseCallbackManager):
        manager = callbacks.copy()
        manager.add_handler(tracer, inherit=True)
        return manager
    return [*(callbacks or []), tracer]


@cache
def _warn_of_ignored_variables() -> None:
    """Log the warning once in a process."""
    if ignored := tracing_variables(os.environ):
        _log.warning("%s", ignored_line(ignored))


def ignored_line(names: list[str]) -> str:
    """Return the message about variables that would start tracing by themselves."""
    verb = "is" if len(names) == 1 else "are"
    return (
        f"{', '.join(names)} {verb} ignored: sleuth sends nothing to LangSmith unless SLEUTH_TRACING=langsmith is set."
    )
