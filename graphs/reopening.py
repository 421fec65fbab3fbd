"""Going on with a run that its budget has ended, once it may spend more."""

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from sleuth.graphs.hops import Compiled

_ENDED = "out_of_budget"


async def reopen(graph: Compiled, config: RunnableConfig) -> None:
    """Branches a run whose answer is that its budget was used up, from before it noticed; any other is let be.

    The branch has the calls that were made until then. A hop that ran out of budget begins anew.
    """
    latest = await graph.aget_state(config)
    if latest.tasks or (latest.values.get("verdict") or {}).get("status") != _ENDED:
        return
    states = {_id(state.config): state async for state in graph.aget_state_history(config)}
    at: StateSnapshot | None = latest
    while at is not None and _ran_out(at.values):
        at = states.get(parent_id(at))
    if at is not None:
        await graph.aupdate_state(at.config, None, as_node="__copy__")


def parent_id(state: StateSnapshot) -> str:
    """The checkpoint before that of a state, empty where there is none."""
    return _id(state.parent_config or {})


def _id(config: RunnableConfig) -> str:
    return str(config.get("configurable", {}).get("checkpoint_id", ""))


def _ran_out(values: Mapping[str, Any]) -> bool:
    """Whether a state knows that the budget is used up, or that of a hop."""
    verdict, hops = values.get("verdict"), values.get("hops") or {}
    turns: Iterable[Any] = (verdict, values.get("hop"), *hops.values())
    return bool(values.get("halted")) or any(turn and turn["status"] == _ENDED for turn in turns)
