"""A passage about a fair, a question about it, and parts of LangChain that find and answer it."""

from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever

FAIR = "The Kelp Fair is held at Brindlecote every May."
QUESTION = "Which fair is held at Brindlecote?"
READING = '{"answerable": true, "answer": "Kelp Fair", "citations": [{"source": 1, "quote": "The Kelp Fair"}]}'
USAGE: Any = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}


class Replies(GenericFakeChatModel):
    """A chat model with given replies, which also takes tools."""

    def bind_tools(self, tools: Any, **options: Any) -> "Replies":
        return self


def replying(*replies: str | AIMessage) -> Replies:
    messages = (each if isinstance(each, AIMessage) else AIMessage(each, usage_metadata=USAGE) for each in replies)
    return Replies(messages=messages)


class Fixed(BaseRetriever):
    """A retriever that always finds the same documents."""

    found: tuple[Document, ...] = (Document(FAIR),)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [*self.found]
