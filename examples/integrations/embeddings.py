# Any LangChain embeddings index and search the documents: python embeddings.py FOLDER QUESTION
import sys

from langchain_openai import OpenAIEmbeddings

from sleuth import sync

embedder = OpenAIEmbeddings(model="text-embedding-3-small", check_embedding_ctx_length=False)  # no download of tiktoken
sync.ingest(sys.argv[1], embedder=embedder)
with sync.open(embedder=embedder) as app:
    print(app.ask(sys.argv[2]).text)
