"""The chat graph in an application of one's own: a conversation on the terminal, with an own checkpointer."""

import asyncio
import sys

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import sleuth


async def main() -> None:
    saver = InMemorySaver()  # a conversation that outlives the process needs one that lasts
    chat = sleuth.graph("chat").compile(checkpointer=saver)
    thread = {"configurable": {"thread_id": "chat-1"}}
    async with sleuth.open() as app:
        context = app.context("chat", values={"method": "plain-rag"}, saver=saver)
        waiting = False
        for line in sys.stdin:
            given = Command(resume=line.strip()) if waiting else {"messages": [("user", line.strip())]}
            state = await chat.ainvoke(given, thread, context=context)
            waiting = "__interrupt__" in state  # it has asked back
            print(state["messages"][-1].text)


asyncio.run(main())
