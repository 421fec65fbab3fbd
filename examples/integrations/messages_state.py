# A method is a subgraph of a graph with messages and a checkpointer: python messages_state.py QUESTION
import sys

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from sleuth import sync

with sync.open() as app:
    graph = StateGraph(MessagesState).add_node("look_up", app.as_subgraph("par-rag")).add_edge(START, "look_up")
    thread = {"configurable": {"thread_id": "1"}}
    given = {"messages": [("user", sys.argv[1])]}
    for namespace, update in graph.compile(InMemorySaver()).stream(
        given, thread, stream_mode="updates", subgraphs=True
    ):
        print(namespace, *update, file=sys.stderr)
print(update["look_up"]["messages"][-1].text)
