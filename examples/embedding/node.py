"""A method as a node of another graph: find the answer, then write it into a letter.

The node calls `once`: if LangGraph runs it again after an interruption, the earlier run is resumed.
"""

import asyncio
import sys
from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

import sleuth


class Letter(TypedDict, total=False):
    question: str
    answer: dict[str, Any]
    text: str


async def main(question: str = "Who built the Pellowrig Light?") -> None:
    async with sleuth.open() as app:

        async def look_up(state: Letter, config: RunnableConfig) -> Letter:
            place = f"{config['configurable']['thread_id']}/look_up"
            found = await app.once(place, state["question"], method="plain-rag")
            return {"answer": found.to_json()}

        async def write(state: Letter) -> Letter:
            return {"text": f"Dear reader,\n\nyou asked: {state['question']}\nIt is {state['answer']['text']}."}

        graph = StateGraph(Letter)
        graph.add_node(look_up)
        graph.add_node(write)
        graph.add_edge(START, "look_up")
        graph.add_edge("look_up", "write")
        graph.add_edge("write", END)
        letters = graph.compile(checkpointer=InMemorySaver())  # use a persistent one to survive a kill
        state = await letters.ainvoke({"question": question}, {"configurable": {"thread_id": "letter-1"}})
    print(state["text"])


asyncio.run(main(*sys.argv[1:2]))
