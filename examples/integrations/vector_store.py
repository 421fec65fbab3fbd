# Any LangChain vector store is searched instead of the collection: python vector_store.py FILE QUESTION
import sys
from pathlib import Path

from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import OpenAIEmbeddings

from sleuth import sync

embedder = OpenAIEmbeddings(model="text-embedding-3-small", check_embedding_ctx_length=False)  # no download of tiktoken
store = InMemoryVectorStore.from_texts(Path(sys.argv[1]).read_text(encoding="utf-8").split("\n\n"), embedder)
with sync.open(retriever=store) as app:
    print(app.ask(sys.argv[2]).text)
