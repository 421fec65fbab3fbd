# A method is a subgraph of a graph with a state of its own: python subgraph.py TOPIC
import sys
from typing import TypedDict

from langgraph.graph import START, StateGraph

from sleuth import sync


class State(TypedDict):
    topic: str
    messages: list


with sync.open() as app:
    graph = StateGraph(State)
    graph.add_node("look_up", app.as_subgraph("par-rag", question=lambda state: f"Who built {state['topic']}?"))
    graph.add_edge(START, "look_up")
    print(graph.compile().invoke({"topic": sys.argv[1]})["messages"][-1].text)
