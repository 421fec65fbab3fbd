"""Checkpoints of one thread under ids of the test's choice."""

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint


async def put(saver: BaseCheckpointSaver[str], id: str, parent: str | None = None) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": parent}}
    await saver.aput(config, {**empty_checkpoint(), "id": id}, {"source": "loop", "step": 0}, {})


async def latest(saver: BaseCheckpointSaver[str]) -> str:
    found = await saver.aget_tuple({"configurable": {"thread_id": "t"}})
    assert found
    return found.checkpoint["id"]
