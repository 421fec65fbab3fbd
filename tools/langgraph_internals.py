"""Names of LangGraph that are not public, and what sleuth needs each of them for.

Nothing else in sleuth uses such a name. After an upgrade of LangGraph, the tests of this module fail for each name that
has gone or has another meaning.

| name | used for | instead, once LangGraph has it |
| --- | --- | --- |
| `StreamMessagesHandler` | the text of an answer in the `messages` stream | a writer for that stream |
| `_DeltaSnapshot` | reading and writing the whole value of a delta channel | the same class without the underscore |
| `__pregel_checkpointer` | the checkpointer of the graph around a subgraph | a field of the runtime |
| `__return__` | telling a task that has returned from one that has failed | a status of the writes |
| `__copy__` | branching a run from a checkpoint without changing it | a method that forks |
| `graph:step:` | telling the span of a node from that of a router | a tag or a type of the run |
| `_last_v6_timestamp` | later ids of checkpoints than those of another process | a function that sets the clock |
"""

from typing import Any

from langgraph.checkpoint.base import id as clock
from langgraph.checkpoint.serde import types
from langgraph.pregel import _messages

DeltaSnapshot = types._DeltaSnapshot
StreamMessagesHandler = _messages.StreamMessagesHandler

CHECKPOINTER = "__pregel_checkpointer"
"""The key of the checkpointer of the graph around a node, in the config of the node."""

RETURN = "__return__"
"""The channel to which the result of a task is written."""

COPY = "__copy__"
"""The node in whose name a checkpoint is copied."""

NODE_TAG = "graph:step:"
"""The beginning of a tag of each node's run."""


def advance_clock(id: str) -> None:
    """Let this process give later ids to all new checkpoints than one that it has read.

    LangGraph orders checkpoints by their ids, which contain the time. A clock that is behind would place a new
    checkpoint before those of another process.
    """
    if len(id) == 36 and (made := clock.UUID(id)).version == 6:
        state: Any = clock
        state._last_v6_timestamp = max(state._last_v6_timestamp or 0, made.time)
