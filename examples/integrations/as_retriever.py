# The search of sleuth is a retriever of a LangChain chain: python as_retriever.py QUESTION
import sys

from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

from sleuth import sync

prompt = ChatPromptTemplate.from_template("Answer from these documents: {documents}\n\n{question}")
with sync.open() as app:
    search = {"documents": app.as_retriever(k=5, mode="graph"), "question": lambda question: question}
    print((search | prompt | ChatOpenAI(model="gpt-5-mini")).invoke(sys.argv[1]).text)
