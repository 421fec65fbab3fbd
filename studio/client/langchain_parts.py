"""Methods as LangChain tools, and search as a LangChain retriever, for agents and chains of others."""

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import Field

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.tracing import Untraced
from sleuth.graphs.evidence.answer_text import message_of
from sleuth.graphs.registry import method as method_of
from sleuth.studio.client.callers import call_blocking, call_in
from sleuth.studio.client.opening import Opener
from sleuth.tools.errors import SleuthError
from sleuth.tools.search import Mode
from sleuth.tools.search.langchain import as_document
from sleuth.tools.types import Hit

Content = tuple[str, dict[str, Any]]


def tool_of(ask: Callable[[str], Coroutine[Any, Any, Answer]], method: str, *, opener: Opener) -> BaseTool:
    """Return a tool that answers a question with footnotes; its message has the whole answer as `artifact`.

    The tool returns the message of a `SleuthError` instead of an answer.

    Args:
        ask: answers a question.
        method: the name of the method.
        opener: the opener of its connections.
    """

    async def content(question: str) -> Content:
        try:
            result = await ask(question)
        except SleuthError as error:
            raise ToolException(str(error)) from error
        return message_of(result), result.to_json()

    async def answer(question: str) -> Content:
        return await call_in(opener, partial(content, question))

    def answer_sync(question: str) -> Content:
        return call_blocking(opener, partial(content, question))

    return StructuredTool.from_function(
        func=answer_sync,
        coroutine=answer,
        name=method_of(method).name.replace("-", "_"),
        description="Answers one whole question from the user's own documents, with citations.",
        response_format="content_and_artifact",
        handle_tool_error=True,
        callbacks=[Untraced()],
    )


class SleuthRetriever(BaseRetriever):
    """Search of a collection as a LangChain retriever, asynchronous or synchronous.

    `k` passages are found by the search `mode` in the documents that match the filter `where`; all three can also be
    arguments of `invoke`. The metadata of a document are `id`, `document`, `title`, `start`, `end` (characters in the
    document), `score` and `rank`; after graph search also `why`, the path to the passage.
    """

    search: Callable[..., Awaitable[list[Hit]]] = Field(repr=False)
    opener: Opener = Field(repr=False)
    k: int = 5
    mode: Mode = "hybrid"
    where: str = ""

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        **options: Any,  # noqa: ANN401 - k, mode and where
    ) -> list[Document]:
        return await call_in(self.opener, partial(self._search, query, **options))

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        **options: Any,  # noqa: ANN401 - k, mode and where
    ) -> list[Document]:
        return call_blocking(self.opener, partial(self._search, query, **options))

    async def _search(
        self, query: str, *, k: int | None = None, mode: Mode | None = None, where: str | None = None
    ) -> list[Document]:
        chosen = self.where if where is None else where
        hits = await self.search(query, k=k or self.k, mode=mode or self.mode, where=chosen)
        return [as_document(hit) for hit in hits]
