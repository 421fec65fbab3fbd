"""Methods as LangChain tools of other agents."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.tools import BaseTool, ToolException

from sleuth.graphs.core import Answer, Verdict
from sleuth.graphs.evidence import with_footnotes
from sleuth.graphs.registry import method as method_of
from sleuth.tools.errors import SleuthError
from sleuth.tools.tracing import PrivateTool


def tool_of(ask: Callable[[str], Awaitable[Answer]], method: str) -> BaseTool:
    """Return a tool that answers a question with footnotes; its message has the whole answer as `artifact`.

    The tool returns the message of a `SleuthError` instead of an answer.
    """
    name = method_of(method).name.replace("-", "_")

    async def answer(question: str) -> tuple[str, dict[str, Any]]:
        try:
            found = await ask(question)
        except SleuthError as error:
            raise ToolException(str(error)) from error
        text = with_footnotes(Verdict(status=found.status, text=found.text, citations=found.citations)).text
        return text, found.to_json()

    return PrivateTool.from_function(
        coroutine=answer,
        name=name,
        description="Answers one whole question from the user's own documents, with citations.",
        response_format="content_and_artifact",
        handle_tool_error=True,
    )
