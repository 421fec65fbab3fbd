# A deep agent gives research in the documents to a method, as a sub-agent: python deep_agent.py QUESTION
import sys

from deepagents import create_deep_agent
from langchain_openai import ChatOpenAI

from sleuth import sync

with sync.open() as app:
    researcher = {
        "name": "documents",
        "description": "answers questions from the documents, with sources",
        "runnable": app.as_subgraph("par-rag"),
    }
    agent = create_deep_agent(ChatOpenAI(model="gpt-5-mini"), subagents=[researcher])
    print(agent.invoke({"messages": [("user", sys.argv[1])]})["messages"][-1].text)
