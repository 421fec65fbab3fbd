"""The parts of OpenAI's chat API that the server uses; other fields of a request are ignored.

The classes are not those of `openai.types`: importing them loads 640 modules, and they would add 23 schemas that the
server never uses to the OpenAPI description.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from sleuth.agents.formatting import Turn
from sleuth.studio.server.schemas.runs import BudgetForm, Form
from sleuth.tools.errors import UsageError

Content = Annotated[str, StringConstraints(max_length=200_000)]
"""A text of a message. The limit also makes Pydantic reject invalid Unicode, which cannot be stored."""


class MessagePart(BaseModel):
    """A part of a message; only its text is used."""

    type: str
    text: Content = ""


class ChatMessage(BaseModel):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content | list[MessagePart] | None = None

    def text(self) -> str:
        """Return the text of the message."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.text).strip()
        return (self.content or "").strip()


NO_TOOLS = "The methods call no tools of a client: send the request without `tools`. To give them to a model, use MCP."
NO_FORMAT = "`{name}` has the type {type!r}: answers are text. Leave it out; citations are in the annotations."


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool = False


class Options(Form):
    """Options that OpenAI's API does not have; pass them as `extra_body={"sleuth": {…}}` in its client."""

    values: dict[str, Any] = Field(default_factory=dict, description="settings of the method")
    budget: BudgetForm = Field(default_factory=BudgetForm)


class TextFormat(BaseModel):
    """The format of the answer; only text is supported."""

    type: str = "text"


class ChatForm(BaseModel):
    """A conversation that ends with a question; `model` is a method."""

    model_config = ConfigDict(extra="ignore")

    model: str
    messages: list[ChatMessage] = Field(min_length=1, max_length=1000)
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Literal[1] = 1
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    response_format: TextFormat | None = None
    sleuth: Options = Field(default_factory=Options)

    def require_supported(self) -> None:
        """Raise UsageError for tools and for formats other than text: the client would wait for what never comes."""
        if self.tools or self.functions:
            raise UsageError(NO_TOOLS)
        if self.response_format and self.response_format.type != "text":
            raise UsageError(NO_FORMAT.format(name="response_format", type=self.response_format.type))

    def question(self) -> str:
        """Return the last message; raise UsageError if it is not the user's."""
        last = self.messages[-1]
        if last.role != "user" or not last.text():
            raise UsageError("The last message must be a question with the role `user`.")
        return last.text()

    def turns(self) -> list[Turn]:
        """Return the earlier messages of user and assistant; system messages are ignored."""
        speakers: dict[str, Literal["user", "assistant"]] = {"user": "user", "assistant": "assistant"}
        return [
            Turn(speaker=speakers[message.role], text=message.text())
            for message in self.messages[:-1]
            if message.role in speakers and message.text()
        ]


class UrlCitation(BaseModel):
    """A footnote mark in the text, and the passage that it cites."""

    start_index: int
    end_index: int
    title: str
    url: str


class Annotation(BaseModel):
    """A citation, in OpenAI's form."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class CachedTokens(BaseModel):
    """A part of the prompt tokens."""

    cached_tokens: int


class Usage(BaseModel):
    """Tokens of the run and of rewriting a follow-up."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class CompletionMessage(BaseModel):
    """The reply: the answer with footnotes, its steps, its citations."""

    role: Literal["assistant"] = "assistant"
    content: str
    reasoning_content: str
    annotations: list[Annotation]


class Choice(BaseModel):
    """The only choice of a completion."""

    index: Literal[0] = 0
    message: CompletionMessage
    finish_reason: Literal["stop", "length"]
    logprobs: None = None


class Completion(BaseModel):
    """A chat completion."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage
    metadata: dict[str, str] = Field(description="thread, rewritten question, status")


class ModelRow(BaseModel):
    """A method, listed as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "sleuth"


class ModelList(BaseModel):
    """The methods, listed as models."""

    object: Literal["list"] = "list"
    data: list[ModelRow]


class EmbeddingForm(BaseModel):
    """Texts to embed; `model` is the embedder of the server."""

    model_config = ConfigDict(extra="ignore")

    model: str
    input: Content | Annotated[list[Content], Field(min_length=1, max_length=2048)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: None = None

    def texts(self) -> list[str]:
        """Return the texts; raise UsageError for an empty one."""
        texts = [self.input] if isinstance(self.input, str) else self.input
        if not all(text.strip() for text in texts):
            raise UsageError("A text of `input` is empty.")
        return texts


class Embedding(BaseModel):
    """The vector of a text: numbers, or their 32-bit floats as base64."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingUsage(BaseModel):
    """Tokens are not counted."""

    prompt_tokens: int = 0
    total_tokens: int = 0


class EmbeddingList(BaseModel):
    """The vectors, in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage = Field(default_factory=EmbeddingUsage)
