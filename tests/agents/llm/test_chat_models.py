"""LangChain chat models as a `Model`: sampling, schemas, log-probabilities, streams and errors."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from langchain_core import exceptions
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk as create_tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from model_server import Recorder
from pydantic import Field

from sleuth.agents.llm.chat_models import ChatModels
from sleuth.agents.llm.client import ESTIMATED, NO_CHOICE, NO_LOGPROBS, NO_SCHEMA, REFUSED
from sleuth.agents.model import Message, Request, Sampling
from sleuth.tools.errors import BadReply, ContextTooLong, ModelError, ModelTimeout, ModelUnavailable, UnknownName

SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
USAGE = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10, "input_token_details": {"cache_read": 5}}
ABOUT = {"model_name": "plain-1", "finish_reason": "length"}


class Plain(BaseChatModel):
    """A chat model without tools or structured output, which keeps what it was asked."""

    reply: AIMessage = Field(default_factory=lambda: AIMessage("Kelp Fair"))
    fails: Any = None
    temperature: float | None = None
    num_predict: int = 0
    asked: list[tuple[list[BaseMessage], float | None, int]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "plain"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.asked.append((messages, self.temperature, self.num_predict))
        if self.fails:
            raise self.fails
        return ChatResult(generations=[ChatGeneration(message=self.reply)])


class Streaming(Plain):
    async def _astream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        for piece in ("Kelp", " ", "Fair"):
            yield ChatGenerationChunk(message=AIMessageChunk(piece))


class WithLogprobs(Plain):
    logprobs: bool | None = None
    top_logprobs: int | None = None

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        assert (self.logprobs, self.top_logprobs) == (True, 2)
        top = [{"token": "Yes", "logprob": -0.1}, {"token": "No", "logprob": -2.5}]
        content = [{"token": "Yes", "logprob": -0.1, "top_logprobs": top}]
        message = AIMessage("Yes", response_metadata={"logprobs": {"content": content}})
        return ChatResult(generations=[ChatGeneration(message=message)])


class WithTools(Plain):
    """A chat model that writes structured output as a tool call."""

    tools: list[Any] = Field(default_factory=list)

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        self.tools.extend(tools)
        call = {"name": "reader_read", "args": {"answer": "Kelp Fair"}, "id": "1"}
        return self.model_copy(update={"reply": AIMessage("", tool_calls=[call])})


def request(**more: Any) -> Request:
    messages = (Message(role="system", content="Answer."), Message(role="user", content="Which fair?"))
    return Request(call_id="1", role="reader", prompt="reader/read", messages=messages, input={}, **more)


def models(model: BaseChatModel, **more: Any) -> ChatModels:
    return ChatModels({"default": model}, **more)


async def test_text_usage_and_finish_are_read() -> None:
    model = Plain(reply=AIMessage("Kelp Fair", usage_metadata=USAGE, response_metadata=ABOUT))  # type: ignore[arg-type]
    reply = await models(model).call(request(sampling=Sampling(max_tokens=40, temperature=0.3)))
    assert (reply["text"], reply["finish"], reply["model"]) == ("Kelp Fair", "length", "plain-1")
    assert reply["usage"] == {"prompt_tokens": 7, "cached_tokens": 5, "completion_tokens": 3}
    ((messages, temperature, length),) = model.asked
    assert [(each.type, each.content) for each in messages] == [("system", "Answer."), ("human", "Which fair?")]
    assert (temperature, length) == (0.3, 40)
    assert (model.temperature, model.num_predict) == (None, 0), "the model that was given is unchanged"


async def test_temperature_is_not_sent_to_models_without_it() -> None:
    model = Plain(profile={"temperature": False, "max_input_tokens": 20_000})
    await models(model).call(request(sampling=Sampling(temperature=0.3)))
    assert model.asked[0][1] is None
    assert 19_000 < models(model).context_window < 20_000


async def test_constraints_are_written_into_the_prompt_of_models_without_them() -> None:
    model = Plain()
    guided = await models(model).call(request(schema=SCHEMA))
    chosen = await models(model).call(request(choices=("Yes", "No")))
    first, second = ([str(message.content) for message in messages] for messages, *_ in model.asked)
    assert json.dumps(SCHEMA) in first[-1]
    assert "Yes, No" in second[-1]
    assert (guided["warnings"], chosen["warnings"]) == ([NO_SCHEMA, ESTIMATED], [NO_CHOICE, ESTIMATED])


async def test_structured_output_is_used_where_it_exists() -> None:
    model, heard = WithTools(), Recorder()
    reply = await models(model).call(request(schema=SCHEMA, listener=heard))
    assert json.loads(reply["text"]) == {"answer": "Kelp Fair"}
    assert reply["warnings"] == [ESTIMATED]
    (tool,) = model.tools
    assert (tool["title"], tool["properties"]) == ("reader_read", SCHEMA["properties"])
    assert heard.texts == [reply["text"]]


async def test_log_probabilities_are_read_or_missed() -> None:
    reply = await models(WithLogprobs()).call(request(sampling=Sampling(top_logprobs=2)))
    assert reply["logprobs"] == [{"token": "Yes", "logprob": -0.1, "top": {"No": -2.5, "Yes": -0.1}}]
    missed = await models(Plain()).call(request(sampling=Sampling(top_logprobs=2)))
    assert (missed["logprobs"], missed["warnings"]) == (None, [NO_LOGPROBS, ESTIMATED])


async def test_tokens_are_streamed() -> None:
    heard = Recorder()
    reply = await models(Streaming()).call(request(listener=heard))
    assert reply["text"] == "".join(heard.texts) == "Kelp Fair"
    assert len(heard.texts) >= 3


class StreamingTools(WithTools):
    """A chat model that streams its tool call, in pieces of its arguments."""

    async def _astream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        for name, args in (("reader_read", '{"answer": '), (None, '"Kelp '), (None, 'Fair"}')):
            piece = create_tool_call_chunk(name=name, args=args, id=name and "1", index=0)
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[piece]))


async def test_tokens_of_a_structured_output_are_streamed() -> None:
    heard = Recorder()
    reply = await models(StreamingTools()).call(request(schema=SCHEMA, listener=heard))
    assert heard.texts == ['{"answer": ', '"Kelp ', 'Fair"}']
    assert reply["text"] == "".join(heard.texts)


async def test_errors_name_the_model() -> None:
    with pytest.raises(ModelUnavailable, match="Plain failed: OSError: no route"):
        await models(Plain(fails=OSError("no route"))).call(request())
    with pytest.raises(ModelTimeout, match="Plain gave no reply within"):
        await models(Plain(fails=TimeoutError())).call(request())


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (
            exceptions.ModelRateLimitError("slow down"),
            ModelUnavailable,
            "Plain is overloaded: .*slow down. Lower SLEUTH_CONC",
        ),
        (
            exceptions.ModelConnectionError("no route"),
            ModelUnavailable,
            "Plain cannot be reached: .*no route. Check the",
        ),
        (exceptions.ModelAPIError("status 500"), ModelUnavailable, "Plain failed: ModelAPIError: status 500"),
        (exceptions.ModelTimeoutError("late"), ModelTimeout, "Plain gave no reply within"),
        (
            exceptions.ContextOverflowError("9000 tokens"),
            ContextTooLong,
            "Plain finds the prompt too long: .*9000 tokens",
        ),
        (exceptions.ModelRefusalError("I must not"), BadReply, "Plain refuses to reply: .*I must not"),
        (exceptions.ModelAuthenticationError("no key"), ModelError, "Plain refuses the key"),
        (exceptions.ModelPermissionDeniedError("no"), ModelError, "Plain refuses the key"),
        (exceptions.ModelNotFoundError("gpt"), ModelError, "Plain is not served"),
        (exceptions.ModelInvalidRequestError("bad role"), ModelError, "Plain refuses the call: .*bad role"),
    ],
)
async def test_errors_of_langchain_have_their_kind(fault: Exception, kind: type[ModelError], text: str) -> None:
    with pytest.raises(ModelError, match=text) as raised:
        await models(Plain(fails=fault)).call(request())
    assert type(raised.value) is kind


async def test_refused_temperature_is_left_out() -> None:
    class Fixed(Plain):
        def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            if self.temperature is not None:
                raise exceptions.ModelInvalidRequestError("Unsupported parameter: 'temperature'")
            return super()._generate(messages)

    reply = await models(Fixed()).call(request(sampling=Sampling(temperature=0.5)))
    assert (reply["text"], reply["warnings"]) == ("Kelp Fair", [REFUSED.format("temperature"), ESTIMATED])


@pytest.mark.parametrize("listener", [None, Recorder()])
async def test_message_that_is_a_refusal_is_no_reply(listener: Recorder | None) -> None:
    declined = AIMessage([{"type": "refusal", "refusal": "I must not"}])
    with pytest.raises(BadReply, match=r"Plain refuses to reply: .*I must not"):
        await models(Plain(reply=declined)).call(request(listener=listener))


async def test_roles_may_have_models_of_their_own() -> None:
    reader, other = Plain(), Plain(reply=AIMessage("other"))
    both = ChatModels({"default": other, "reader": reader})
    assert (await both.call(request()))["text"] == "Kelp Fair"
    assert (both.name_of("planner"), other.asked) == ("Plain", [])
    with pytest.raises(UnknownName, match="Did you mean reader"):
        ChatModels({"default": other, "raeder": reader})
