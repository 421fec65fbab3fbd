# A method is a subgraph of a graph with messages: python messages_state.py QUESTION
import sys

from langgraph.graph import START, MessagesState, StateGraph

from sleuth import sync

with sync.open() as app:
    graph = StateGraph(MessagesState)
    graph.add_node("look_up", app.as_subgraph("par-rag"))
    graph.add_edge(START, "look_up")
    state = graph.compile().invoke({"messages": [("user", sys.argv[1])]})
print(state["messages"][-1].text)
