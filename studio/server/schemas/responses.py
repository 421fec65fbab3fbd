"""The parts of OpenAI's Responses API that the server uses; other fields of a request are ignored."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sleuth.studio.server.schemas.openai import (
    NO_FORMAT,
    NO_TOOLS,
    CachedTokens,
    ChatForm,
    ChatMessage,
    Content,
    Options,
    TextFormat,
)
from sleuth.tools.errors import UsageError


class TextOptions(BaseModel):
    """Options of the answer's text."""

    format: TextFormat = Field(default_factory=TextFormat)


class ResponseForm(BaseModel):
    """A question, or a conversation that ends with one; `model` is a method."""

    model_config = ConfigDict(extra="ignore")

    model: str
    input: Content | list[ChatMessage]
    stream: bool = False
    tools: list[Any] | None = None
    text: TextOptions | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: Any = None
    sleuth: Options = Field(default_factory=Options)

    def to_chat(self) -> ChatForm:
        """Return the same request of the chat API.

        Raises:
            UsageError: it asks for something that the server does not have.
        """
        if self.tools:
            raise UsageError(NO_TOOLS)
        if self.text and self.text.format.type != "text":
            raise UsageError(NO_FORMAT.format(name="text.format", type=self.text.format.type))
        if self.background:
            raise UsageError("`background` is not supported here: start a background run with POST /v1/runs.")
        if self.previous_response_id or self.conversation:
            raise UsageError("Responses are not chained: send the whole conversation as `input`.")
        messages = [ChatMessage(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        if not messages:
            raise UsageError("`input` is empty.")
        return ChatForm(model=self.model, messages=messages, stream=self.stream, sleuth=self.sleuth)


class TextAnnotation(BaseModel):
    """A footnote mark in the text, and the address of the cited passage in the page."""

    type: Literal["url_citation"] = "url_citation"
    start_index: int
    end_index: int
    title: str
    url: str


class OutputText(BaseModel):
    """The text of the answer, with footnotes."""

    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[TextAnnotation]


class OutputMessage(BaseModel):
    """The answer."""

    type: Literal["message"] = "message"
    id: str
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed"] = "completed"
    content: list[OutputText]


class ReasoningTokens(BaseModel):
    """A part of the reply tokens; it is not counted."""

    reasoning_tokens: int = 0


class ResponseUsage(BaseModel):
    """Tokens of the run and of rewriting a follow-up."""

    input_tokens: int
    input_tokens_details: CachedTokens
    output_tokens: int
    output_tokens_details: ReasoningTokens = Field(default_factory=ReasoningTokens)
    total_tokens: int


class ResponseError(BaseModel):
    """The error of a run that ended without an answer."""

    code: str
    message: str


class Incomplete(BaseModel):
    """The budget was used up before the answer was complete."""

    reason: Literal["max_output_tokens"] = "max_output_tokens"


class Response(BaseModel):
    """A response."""

    id: str
    object: Literal["response"] = "response"
    created_at: float
    model: str
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    output: list[OutputMessage]
    usage: ResponseUsage | None = None
    error: ResponseError | None = None
    incomplete_details: Incomplete | None = None
    metadata: dict[str, str] = Field(description="thread, rewritten question, status")
    tools: list[Any] = Field(default_factory=list)
    tool_choice: Literal["none"] = "none"
    parallel_tool_calls: Literal[False] = False
