# A client of LangGraph Server asks `sleuth serve`: python sdk_client.py http://127.0.0.1:8100/langgraph QUESTION
import sys

from langgraph_sdk import get_sync_client

client = get_sync_client(url=sys.argv[1])
asked = {"messages": [{"role": "user", "content": sys.argv[2]}]}
print(client.runs.wait(None, "chat", input=asked)["messages"][-1]["content"])
