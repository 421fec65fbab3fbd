# An agent of LangChain decides when to ask the documents: python create_agent.py QUESTION
import sys

from langchain.agents import create_agent

from sleuth import sync

with sync.open() as app:
    agent = create_agent("openai:gpt-5-mini", [app.as_tool("par-rag")])
    print(agent.invoke({"messages": [("user", sys.argv[1])]})["messages"][-1].text)
