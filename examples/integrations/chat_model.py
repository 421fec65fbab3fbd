# Any LangChain chat model answers instead of a model server: python chat_model.py QUESTION
import sys

from langchain_openai import ChatOpenAI

from sleuth import sync

with sync.open(model=ChatOpenAI(model="gpt-5-mini")) as app:
    print(app.ask(sys.argv[1]).text)
