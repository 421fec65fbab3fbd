# A method is a tool that a chat model calls: python tool.py QUESTION
import sys

from langchain_openai import ChatOpenAI

from sleuth import sync

with sync.open() as app:
    tool = app.as_tool("par-rag")
    call = ChatOpenAI(model="gpt-5-mini").bind_tools([tool]).invoke(sys.argv[1]).tool_calls[0]
    print(tool.invoke(call).text)
