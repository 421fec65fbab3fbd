"""Callbacks of runs: those of the caller, and the tracers that the setting asks for.

langchain-core adds a LangSmith tracer to every run when one of its environment variables is set, unless the run's
callbacks contain a tracer already. So all graphs of sleuth have an `Untraced` tracer, which sends nothing, and `traced`
adds another one where a caller or the setting asks for it. Nothing global changes, so an application that embeds sleuth
keeps its own tracing. The part `tracing` makes the tracers of the setting.
"""

import logging
import os
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.callbacks.base import Callbacks
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs, var_child_runnable_config
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.context import tracing_v2_callback_var
from langchain_core.tracers.langchain import LangChainTracer
from langsmith import get_tracing_context

from sleuth.agents.llm.tracing import handlers_of
from sleuth.tools.errors import UsageError, needs_part
from sleuth.tools.settings import Tracing, tracing_variables

_log = logging.getLogger(__name__)


class _Empty(dict[Any, Any]):
    """A map that keeps nothing: langchain-core adds runs of the caller to the maps of each tracer."""

    def __setitem__(self, key: object, value: object) -> None:
        """Ignore the value."""

    def setdefault(self, key: object, default: object = None) -> object:
        """Return the default."""
        return default


class Untraced(LangChainTracer):
    """Tracer that receives no event and sends nothing. It occupies the place of the one from the environment."""

    ignore_llm = ignore_chat_model = ignore_chain = ignore_agent = ignore_retriever = True
    ignore_retry = ignore_custom_event = True

    def __init__(self) -> None:
        """Skip the parent's constructor, which creates a LangSmith client."""
        BaseTracer.__init__(self, run_map=_Empty(), order_map=_Empty(), _external_run_ids=_Empty())

    def copy_with_metadata_defaults(
        self, *, metadata: Mapping[str, str] | None = None, tags: list[str] | None = None
    ) -> "Untraced":
        """Return itself: there is nothing to add metadata to."""
        return self


def traced(config: RunnableConfig | None, tracing: Tracing, *, texts: bool = False) -> RunnableConfig:
    """Return the config of a run with the tracers that apply to it.

    Args:
        config: the config that the run is called with.
        tracing: the setting. LangSmith's applies where the caller has not chosen.
        texts: whether traces contain questions, passages, prompts and replies.

    Raises:
        MissingExtra: the setting is `otel`, and its extra is not installed.
    """
    callbacks = [each.get("callbacks") for each in (config, var_child_runnable_config.get()) if each]
    present = [handler for callback in callbacks for handler in handlers_of(callback)]
    tracers = [] if _has_langsmith(present) else _chosen_by_caller()
    if tracing != "off":
        tracers += backend(tracing).tracers_for(tracing, [*present, *tracers], texts=texts)
    if not _has_langsmith([*present, *tracers]):
        _warn_of_ignored_variables()
        tracers.append(Untraced())
    if not tracers:
        return config or {}
    callback = next((each for each in callbacks if each), None)
    return {**(config or {}), "callbacks": merge_configs({"callbacks": callback}, {"callbacks": tracers})["callbacks"]}


def backend(tracing: Tracing) -> ModuleType:
    """Return the module of tracers; raise MissingPart if the part `tracing` is not installed."""
    with needs_part("tracing", f"SLEUTH_TRACING={tracing}"):
        from sleuth.tools.tracing import tracers

    return tracers


def check_callbacks(callbacks: Callbacks) -> Callbacks:
    """Return the callbacks of a caller; raise UsageError if they are no list of handlers."""
    is_list = isinstance(callbacks, list) and all(isinstance(each, BaseCallbackHandler) for each in callbacks)
    if callbacks is not None and not is_list and not isinstance(callbacks, BaseCallbackManager):
        raise UsageError(f"`callbacks` takes a list of LangChain's callback handlers, not {callbacks!r:.200}.")
    return callbacks


def add_callbacks(config: RunnableConfig, callbacks: Callbacks) -> RunnableConfig:
    """Return the config with callbacks in addition to those of the run around this one, if there is one."""
    if not callbacks:
        return config
    outer = (var_child_runnable_config.get() or {}).get("callbacks")
    return merge_configs(config, {"callbacks": outer}, {"callbacks": callbacks})


def _has_langsmith(handlers: list[BaseCallbackHandler]) -> bool:
    return any(isinstance(handler, LangChainTracer) for handler in handlers)


def _chosen_by_caller() -> list[BaseCallbackHandler]:
    """Return the LangSmith tracer that the caller's code has chosen, if it has."""
    context, chosen = get_tracing_context(), tracing_v2_callback_var.get()
    if chosen is not None:
        return [chosen]
    if context["parent"] is not None or context["enabled"]:
        return [LangChainTracer(client=context["parent"].client if context["parent"] else context["client"])]
    return [] if context["enabled"] is None else [Untraced()]


@cache
def _warn_of_ignored_variables() -> None:
    """Log once in a process which variables would start tracing by themselves."""
    if names := tracing_variables(os.environ):
        verb = "is" if len(names) == 1 else "are"
        _log.warning(
            "%s %s ignored: sleuth sends nothing to LangSmith unless SLEUTH_TRACING=langsmith is set.",
            ", ".join(names),
            verb,
        )
