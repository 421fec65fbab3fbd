"""The parts of requests of OpenAI's APIs that the server uses; other fields are ignored."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from sleuth.agents.formatting import Turn
from sleuth.studio.server.schemas.runs import Body, BudgetForm, Form
from sleuth.tools.errors import UsageError

Content = Annotated[str, StringConstraints(max_length=200_000)]
"""A text of a message."""


class MessagePart(Body):
    """A part of a message; only its text is used."""

    type: str
    text: Content = ""


class ChatMessage(Body):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content | list[MessagePart] | None = None

    def text(self) -> str:
        """Return the text of the message."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.text).strip()
        return (self.content or "").strip()


Messages = Annotated[list[ChatMessage], Field(max_length=1000)]
"""A conversation."""

NO_TOOLS = "The methods call no tools of a client: send the request without `tools`. To give them to a model, use MCP."
NO_FORMAT = "The format is {type!r}: answers are text. Leave it out; citations are in the annotations."


class StreamOptions(Body):
    """Options of a stream."""

    include_usage: bool = False


class Options(Form):
    """Options that OpenAI's API does not have; pass them as `extra_body={"sleuth": {…}}` in its client."""

    values: dict[str, Any] = Field(default_factory=dict, description="settings of the method")
    budget: BudgetForm = Field(default_factory=BudgetForm)
    marks: bool = Field(default=True, description="put numbered marks and the quotes of the citations into the text")


class TextFormat(Body):
    """The format of the answer; only text is supported."""

    type: str = "text"


class ChatForm(Body):
    """A conversation that ends with a question; `model` is a method."""

    model_config = ConfigDict(extra="ignore")

    model: str
    messages: Messages = Field(min_length=1)
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Literal[1] = 1
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    response_format: TextFormat | None = None
    sleuth: Options = Field(default_factory=Options)

    def question(self) -> str:
        """Return the last message.

        Raises:
            UsageError: it is not the user's, or the request has tools or a format other than text: the client would
                wait for what never comes.
        """
        if self.tools or self.functions:
            raise UsageError(NO_TOOLS)
        if self.response_format and self.response_format.type != "text":
            raise UsageError(NO_FORMAT.format(type=self.response_format.type))
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


class TextOptions(Body):
    """Options of the answer's text."""

    format: TextFormat = Field(default_factory=TextFormat)


class ResponseForm(Body):
    """A question, or a conversation that ends with one; `model` is a method."""

    model_config = ConfigDict(extra="ignore")

    model: str
    input: Content | Messages
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
        if self.background:
            raise UsageError("`background` is not supported here: start a background run with POST /v1/runs.")
        if self.previous_response_id or self.conversation:
            raise UsageError("Responses are not chained: send the whole conversation as `input`.")
        messages = [ChatMessage(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        if not messages:
            raise UsageError("`input` is empty.")
        return ChatForm(
            model=self.model,
            messages=messages,
            stream=self.stream,
            tools=self.tools,
            response_format=self.text and self.text.format,
            sleuth=self.sleuth,
        )


class EmbeddingForm(Body):
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
