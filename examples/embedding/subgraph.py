"""A method as a subgraph of another graph, which has messages and a checkpointer of its own."""

import asyncio
import sys

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

import sleuth


async def main(question: str = "Who built the Pellowrig Light?") -> None:
    async with sleuth.open() as app:
        graph = StateGraph(MessagesState)
        graph.add_node("look_up", app.as_subgraph("par-rag"))
        graph.add_edge(START, "look_up")
        compiled = graph.compile(checkpointer=InMemorySaver())  # use a persistent one to survive a kill
        thread = {"configurable": {"thread_id": "1"}}
        state = await compiled.ainvoke({"messages": [("user", question)]}, thread)
    print(state["messages"][-1].text)


asyncio.run(main(*sys.argv[1:2]))
