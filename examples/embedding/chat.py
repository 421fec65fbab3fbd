"""The chat graph in another application: a conversation on the terminal with the application's checkpointer."""

import asyncio
import sys

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import sleuth


async def main() -> None:
    saver = InMemorySaver()  # use a persistent one to keep conversations
    thread = {"configurable": {"thread_id": "chat-1"}}
    async with sleuth.open() as app:
        chat = app.graph("chat").compile(checkpointer=saver)
        context = app.context("chat", values={"method": "plain-rag"}, saver=saver)
        waiting = False
        while text := (await asyncio.to_thread(sys.stdin.readline)).strip():  # an empty line ends it
            given = Command(resume=text) if waiting else {"messages": [("user", text)]}
            state = await chat.ainvoke(given, thread, context=context)
            waiting = "__interrupt__" in state  # the chat asks for clarification
            print(state["messages"][-1].text)


asyncio.run(main())
