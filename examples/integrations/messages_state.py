# A method is a subgraph of a graph with messages and a checkpointer: python messages_state.py QUESTION
import sys

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from sleuth import sync

with sync.open() as app:
    graph = StateGraph(MessagesState)
    graph.add_node("look_up", app.as_subgraph("par-rag"))
    graph.add_edge(START, "look_up")
    chat, thread = graph.compile(InMemorySaver()), {"configurable": {"thread_id": "1"}}
    given = {"messages": [("user", sys.argv[1])]}
    for place, update in chat.stream(given, thread, stream_mode="updates", subgraphs=True):
        print(place, *update, file=sys.stderr)
print(update["look_up"]["messages"][-1].text)
