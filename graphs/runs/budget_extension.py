"""Resumption of a run that used up its budget, and errors of states that a fork has changed."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from langchain_core.runnables import RunnableConfig

from sleuth.graphs.core import seconds_at
from sleuth.graphs.persistence import explain_damage
from sleuth.graphs.runs.execution import Compiled, path_to_latest

_ENDED = "out_of_budget"


async def resume_with_budget(graph: Compiled, config: RunnableConfig) -> float | None:
    """Branch a run that ended because its budget was used up, from the last checkpoint before that.

    The branch keeps the calls made until then. A sub-run without budget starts again. Any other run is unchanged.

    Returns:
        The seconds that the run had worked at the branch, which LangGraph does not record in a copy; None without one.
    """
    latest = await graph.aget_state(config)
    if latest.tasks or (latest.values.get("verdict") or {}).get("status") != _ENDED:
        return None
    states = [state async for state in graph.aget_state_history(config)]
    at = next((state for state in path_to_latest(states) if not _is_out_of_budget(state.values)), None)
    if at is None:
        return None
    await graph.aupdate_state(at.config, None, as_node="__copy__")
    return seconds_at(at)


async def explain_changed_state(graph: Compiled, config: RunnableConfig, error: Exception) -> str:
    """Explain an error of a run whose state a fork has changed; raise the error again if no state was changed."""
    fields = await _changed_by_hand(graph, config)
    if not fields:
        raise error
    reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
    return (
        f"Run {config['configurable']['thread_id']} cannot continue from the state that a fork has changed "
        f"({', '.join(fields)}): {reason}. Fork again with values that name only what the state contains."
    )


async def _changed_by_hand(graph: Compiled, config: RunnableConfig) -> list[str]:
    """Return the state fields that forks have changed on the path to the latest checkpoint."""
    with explain_damage(str(config["configurable"]["thread_id"])):
        states = [state async for state in graph.aget_state_history(config)]
    changed: dict[str, None] = {}
    for at, parent in pairwise(path_to_latest(states)):
        if (at.metadata or {}).get("source") == "update":
            changed |= {name: None for name, value in at.values.items() if parent.values.get(name) != value}
    return list(changed)


def _is_out_of_budget(values: Mapping[str, Any]) -> bool:
    """Return whether a state records that the budget, or that of a sub-run, is used up."""
    verdict, hops = values.get("verdict"), values.get("hops") or {}
    turns: Iterable[Any] = (verdict, values.get("hop"), *hops.values())
    return bool(values.get("halted")) or any(turn and turn["status"] == _ENDED for turn in turns)
