"""A method as a tool of another agent: the model decides when to call it.

It needs a model server that accepts tools, such as Ollama with qwen3:4b, or vLLM with --enable-auto-tool-choice and
--tool-call-parser. The one of `sleuth model serve` does not.
"""

import asyncio
import os
import sys

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from openai import APIError

import sleuth


async def main(question: str = "Who built the Pellowrig Light?") -> None:
    async with sleuth.open() as app:
        tools = [app.as_tool("par-rag", budget=sleuth.Budget(max_calls=40))]
        name = os.environ.get("AGENT_MODEL", app.model)
        model = ChatOpenAI(model=name, base_url=app.settings.model_url, api_key="none")

        async def think(state: MessagesState) -> dict:
            return {"messages": [await model.bind_tools(tools).ainvoke(state["messages"])]}

        agent = StateGraph(MessagesState)
        agent.add_node(think)
        agent.add_node("tools", ToolNode(tools))
        agent.add_edge(START, "think")
        agent.add_conditional_edges("think", tools_condition)
        agent.add_edge("tools", "think")
        state = await agent.compile().ainvoke({"messages": [("user", question)]})

    for message in state["messages"]:
        message.pretty_print()
    looked_up = [message.artifact for message in state["messages"] if message.type == "tool"]
    print("\nruns:", ", ".join(answer["thread"] for answer in looked_up if answer))


try:
    asyncio.run(main(*sys.argv[1:2]))
except APIError as error:
    sys.exit(f"The model server cannot be used: {error}\n{__doc__}")
