# Any LangChain retriever is searched instead of the collection: python retriever.py FILE QUESTION
import sys
from pathlib import Path

from langchain_community.retrievers import TFIDFRetriever

from sleuth import sync

retriever = TFIDFRetriever.from_texts(Path(sys.argv[1]).read_text(encoding="utf-8").split("\n\n"))
with sync.open(retriever=retriever) as app:
    print(app.ask(sys.argv[2]).text)
