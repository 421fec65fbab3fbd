"""Going on with a run that its budget has ended, once it may spend more."""

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from sleuth.graphs.core import seconds_at
from sleuth.graphs.persistence import naming
from sleuth.graphs.runs.execution import Compiled

_ENDED = "out_of_budget"


async def reopen(graph: Compiled, config: RunnableConfig) -> float | None:
    """Branches a run whose answer is that its budget was used up, from before it noticed; any other is let be.

    The branch has the calls that were made until then. A hop that ran out of budget begins anew. Returns the seconds
    that the run had worked where it branches, which LangGraph does not record in a copy; None if it does not branch.
    """
    latest = await graph.aget_state(config)
    if latest.tasks or (latest.values.get("verdict") or {}).get("status") != _ENDED:
        return None
    states = {_id(state.config): state async for state in graph.aget_state_history(config)}
    at: StateSnapshot | None = latest
    while at is not None and _ran_out(at.values):
        at = states.get(parent_id(at))
    if at is None:
        return None
    await graph.aupdate_state(at.config, None, as_node="__copy__")
    return seconds_at(at)


async def misled(graph: Compiled, config: RunnableConfig, error: Exception) -> str:
    """Explain an error of a run whose state a fork has changed; raise the error again where no state was changed."""
    fields = await _changed_by_hand(graph, config)
    if not fields:
        raise error
    reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
    return (
        f"Run {config['configurable']['thread_id']} cannot continue from the state that a fork has changed "
        f"({', '.join(fields)}): {reason}. Fork again with values that name only what the state contains."
    )


async def _changed_by_hand(graph: Compiled, config: RunnableConfig) -> list[str]:
    """Return the state fields that forks have changed on the way to where a run is."""
    with naming(str(config["configurable"]["thread_id"])):
        states = [state async for state in graph.aget_state_history(config)]
    by_id = {_id(state.config): state for state in states}
    changed: dict[str, None] = {}
    at = states[0] if states else None
    while at is not None:
        parent = by_id.get(parent_id(at))
        if parent is not None and (at.metadata or {}).get("source") == "update":
            changed |= {name: None for name, value in at.values.items() if parent.values.get(name) != value}
        at = parent
    return list(changed)


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
