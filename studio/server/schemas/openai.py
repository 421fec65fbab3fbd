"""The shapes of OpenAI's chat API, as far as they are used here; what else a client sends is passed over."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from sleuth.agents.formatting import Turn
from sleuth.studio.server.schemas.runs import BudgetForm, Form
from sleuth.tools.errors import UsageError

Words = Annotated[str, StringConstraints(max_length=200_000)]
"""What is said; bounded, so that it is checked: a text that is no Unicode can be neither kept nor asked."""


class Part(BaseModel):
    """A part of a message; only texts are read."""

    type: str
    text: Words = ""


class ChatMessage(BaseModel):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Words | list[Part] | None = None

    def text(self) -> str:
        """What it says."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.text).strip()
        return (self.content or "").strip()


class StreamOptions(BaseModel):
    """How a stream ends."""

    include_usage: bool = False


class Options(Form):
    """What OpenAI's API has no word for; `extra_body={"sleuth": {…}}` in its client."""

    values: dict[str, Any] = Field(default_factory=dict, description="settings of the method")
    budget: BudgetForm = Field(default_factory=BudgetForm)


class ChatForm(BaseModel):
    """A conversation that ends with a question; `model` is a method."""

    model_config = ConfigDict(extra="ignore")

    model: str
    messages: list[ChatMessage] = Field(min_length=1, max_length=1000)
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Literal[1] = 1
    sleuth: Options = Field(default_factory=Options)

    def question(self) -> str:
        """The last message, which must be the person's."""
        last = self.messages[-1]
        if last.role != "user" or not last.text():
            raise UsageError("The last message must be the user's, with a question in it.")
        return last.text()

    def turns(self) -> list[Turn]:
        """What was said before it; instructions to the model are not ours to pass on."""
        speakers: dict[str, Literal["user", "assistant"]] = {"user": "user", "assistant": "assistant"}
        return [
            Turn(speaker=speakers[message.role], text=message.text())
            for message in self.messages[:-1]
            if message.role in speakers and message.text()
        ]


class UrlCitation(BaseModel):
    """A mark in the text, and the passage that it stands for."""

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
    """Tokens of the whole run, and of making the question one that stands alone."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class Said(BaseModel):
    """Our message: the answer with footnotes, its steps, its citations."""

    role: Literal["assistant"] = "assistant"
    content: str
    reasoning_content: str
    annotations: list[Annotation]


class Choice(BaseModel):
    """The only one."""

    index: Literal[0] = 0
    message: Said
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
    metadata: dict[str, str] = Field(description="thread, question as it was asked, status")


class ModelRow(BaseModel):
    """A method as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "sleuth"


class ModelList(BaseModel):
    """The methods as models."""

    object: Literal["list"] = "list"
    data: list[ModelRow]
