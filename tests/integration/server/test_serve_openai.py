"""OpenAI's APIs with the official client: whole and streamed, follow-ups, errors, hanging up, embeddings."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import openai
import pytest
from asgi_server import serving as listening
from hashing_embedder import HashingEmbedder
from openai.types.chat import ChatCompletionMessageParam
from serve_scene import ANNA, BEN, KEYS, QUESTION, READING, Oracle, opening, upload

from sleuth.studio.server.app import create_app
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.settings import Settings

ASKED: list[ChatCompletionMessageParam] = [{"role": "user", "content": QUESTION}]
FOLLOWED: list[ChatCompletionMessageParam] = [
    {"role": "system", "content": "Be a pirate."},
    {"role": "user", "content": "Tell me about the Pellowrig Light."},
    {"role": "assistant", "content": "It is a lighthouse."},
    {"role": "user", "content": "Who built it?"},
]

Chat = Callable[..., AbstractAsyncContextManager[tuple[openai.AsyncOpenAI, httpx.AsyncClient]]]


@pytest.fixture
def chat(tmp_path: Path, oracle: Oracle) -> Chat:
    """Yield a server with Anna's documents, her OpenAI client, and an HTTP client."""

    @asynccontextmanager
    async def served(
        embedder: HashingEmbedder | None = None,
    ) -> AsyncIterator[tuple[openai.AsyncOpenAI, httpx.AsyncClient]]:
        settings = Settings(home=tmp_path, embedder="hashing" if embedder else "none", api_keys=KEYS)
        app = create_app(settings, open_model=opening(oracle), embedder=embedder)
        async with (
            app.router.lifespan_context(app),
            listening(app) as url,
            httpx.AsyncClient(base_url=url, headers=ANNA, timeout=60, trust_env=False) as http,
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="apple-secret", max_retries=0) as client,
        ):
            await upload(http)
            yield client, http

    return served


async def test_completion_has_answer_steps_and_citations(chat: Chat) -> None:
    async with chat() as (client, http):
        made = await client.chat.completions.create(model="plain-rag", messages=ASKED)
        [choice] = made.choices
        assert choice.finish_reason == "stop"
        text = choice.message.content or ""
        assert text.startswith("Edric Gannow [1]")
        assert "“built by Edric Gannow”" in text
        [annotation] = choice.message.annotations or []
        cited = annotation.url_citation
        assert text[cited.start_index : cited.end_index] == "[1]"
        assert cited.url.startswith(f"{str(http.base_url).rstrip('/')}/#/runs/")
        extra: Any = choice.message
        assert "retrieve" in extra.reasoning_content
        assert made.usage
        assert made.usage.total_tokens == made.usage.prompt_tokens + made.usage.completion_tokens > 100
        about: Any = made
        run = (await http.get(f"/v1/runs/{about.metadata['thread']}")).json()
        assert run["answer"]["text"] == "Edric Gannow"


@pytest.mark.parametrize(("text", "reply"), [("Thanks!", "You are welcome!"), ("/help", "I am sleuth:")])
async def test_small_talk_is_no_run(chat: Chat, oracle: Oracle, text: str, reply: str) -> None:
    async with chat() as (client, http):
        asked: list[ChatCompletionMessageParam] = [*FOLLOWED, {"role": "user", "content": text}]
        made = await client.chat.completions.create(model="auto", messages=asked)
        assert (made.choices[0].message.content or "").startswith(reply)
        stream = await client.chat.completions.create(model="auto", messages=asked, stream=True)
        words = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        assert "".join(words).startswith(reply)
        assert (await client.responses.create(model="auto", input=text)).output_text.startswith(reply)
        assert ((await http.get("/v1/runs")).json(), oracle.requests) == ([], [])


def task(kind: str, output: str, history: str) -> str:
    """A default prompt of Open WebUI."""
    return (
        f"### Task:\n{kind}\n### Guidelines:\n- Be brief.\n### Output:\nJSON format: {output}\n"
        f"### Chat History:\n<chat_history>\nUSER: {history}\nASSISTANT: Edric Gannow [1]\n</chat_history>"
    )


TITLE = "Generate a concise, 3-5 word title with an emoji summarizing the chat history.", '{ "title": "your title" }'
TAGS = "Generate 1-3 broad tags categorizing the main themes.\n", '{ "tags": ["tag1", "tag2", "tag3"] }'
NEXT = "Suggest 3-5 relevant follow-up questions.", '{ "follow_ups": ["Question 1?", "Question 2?"] }'


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        (task(*TITLE, QUESTION), {"title": QUESTION}),
        (task(*TITLE, "Who built [the] Light on the northern coast of Varn\nin 1903?" + "x" * 30_000), None),
        (task(*TAGS, QUESTION), {"tags": []}),
        (task(*NEXT, QUESTION), {"follow_ups": []}),
    ],
)
async def test_tasks_of_open_webui_are_no_run(
    chat: Chat, oracle: Oracle, text: str, reply: dict[str, Any] | None
) -> None:
    asked: list[ChatCompletionMessageParam] = [{"role": "user", "content": text}]
    async with chat() as (client, http):
        made = await client.chat.completions.create(model="plain-rag", messages=asked)
        expected = reply or {"title": "Who built [the] Light on the northern coast"}
        assert json.loads(made.choices[0].message.content or "") == expected
        assert ((await http.get("/v1/runs")).json(), oracle.requests) == ([], [])


async def test_question_about_a_task_of_open_webui_is_a_run(chat: Chat) -> None:
    about = task(*TITLE, QUESTION)
    async with chat() as (client, http):
        for question in (f"What does this prompt do? {about}", f"{about}\nWho wrote it?", about.replace("title", "t")):
            await client.responses.create(model="plain-rag", input=question)
        assert len((await http.get("/v1/runs")).json()) == 3


async def test_follow_up_for_reader_is_rewritten_without_a_model(chat: Chat, oracle: Oracle) -> None:
    async with chat() as (client, _):
        asked: list[ChatCompletionMessageParam] = [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": "Edric Gannow [1]"},
            {"role": "user", "content": "And where was he born?"},
        ]
        made: Any = await client.chat.completions.create(model="reader", messages=asked)
        assert made.metadata["question"] == "Where was Edric Gannow born?"
        assert made.choices[0].message.content.startswith("Brindlecote")
        assert oracle.requests == []


async def test_completion_stream_has_the_same_content(chat: Chat) -> None:
    async with chat() as (client, _):
        whole = (await client.chat.completions.create(model="plain-rag", messages=ASKED)).choices[0]
        stream = await client.chat.completions.create(
            model="plain-rag", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        deltas: list[Any] = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        extra: Any = whole.message
        assert deltas[0].role == "assistant"
        assert "".join(delta.content or "" for delta in deltas) == whole.message.content
        assert "".join(getattr(delta, "reasoning_content", "") for delta in deltas) == extra.reasoning_content
        (annotated,) = [delta.annotations for delta in deltas if hasattr(delta, "annotations")]
        cited = [{**each["url_citation"], "url": ""} for each in annotated]
        assert cited == [{**each.url_citation.model_dump(), "url": ""} for each in whole.message.annotations or []]
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
        assert chunks[-1].usage
        assert chunks[-1].usage.total_tokens > 100


async def test_completion_rewrites_a_follow_up(chat: Chat, oracle: Oracle) -> None:
    oracle.said = lambda request: {"question": QUESTION} if request.role == "rewriter" else READING
    async with chat() as (client, http):
        made: Any = await client.chat.completions.create(model="plain-rag", messages=FOLLOWED)
        assert made.metadata["question"] == QUESTION
        rewriting = next(request for request in oracle.requests if request.role == "rewriter")
        assert "It is a lighthouse." in rewriting.text()
        assert "pirate" not in "".join(request.text() for request in oracle.requests)
        run = (await http.get(f"/v1/runs/{made.metadata['thread']}")).json()
        assert run["thread"]["question"] == QUESTION
        assert made.usage.prompt_tokens == run["cost"]["prompt_tokens"] + 100, "rewriting was not counted"


async def test_errors_raise_the_exceptions_of_the_client(chat: Chat, oracle: Oracle) -> None:
    async with chat() as (client, http):
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.chat.completions.create(model="gpt-4o", messages=ASKED)
        assert unknown.value.code == "model_not_found"
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(model="plain-rag", messages=[{"role": "user", "content": " "}])
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(
                model="plain-rag", messages=ASKED, extra_body={"sleuth": {"values": {"k": 1}}}
            )
        with pytest.raises(openai.BadRequestError, match="no documents"):
            await client.with_options(api_key="plum-secret").chat.completions.create(model="plain-rag", messages=ASKED)
        with pytest.raises(openai.AuthenticationError):
            await client.with_options(api_key="wrong").models.list()
        oracle.said = lambda _: ModelUnavailable("The model server is down.")
        with pytest.raises(openai.InternalServerError, match="is down") as down:
            await client.chat.completions.create(model="plain-rag", messages=ASKED)
        assert down.value.status_code == 502
        with pytest.raises(openai.APIError, match="is down"):
            async for _ in await client.chat.completions.create(model="plain-rag", messages=ASKED, stream=True):
                pass
        assert (await http.get("/v1/runs", headers=BEN)).json() == []


async def test_models_are_methods(chat: Chat) -> None:
    async with chat() as (client, _):
        names = [model.id for model in (await client.models.list()).data]
        assert {"plain-rag", "par-rag", "auto"} <= set(names)
        assert (await client.models.retrieve("par-rag")).owned_by == "sleuth"


@pytest.mark.parametrize("kind", ["streamed", "whole", "response"])
async def test_closing_the_connection_cancels_a_resumable_run(chat: Chat, oracle: Oracle, kind: str) -> None:
    oracle.free.clear()
    async with chat() as (client, http):
        asking = asyncio.create_task(_ask(client, kind))
        await oracle.asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        [row] = await _settled(http)
        assert row["state"] == "stopped"
        oracle.free.set()
        assert (await http.post(f"/v1/runs/{row['id']}/resume")).status_code == 202
        assert '"answered"' in (await http.get(f"/v1/runs/{row['id']}/events")).text


async def _ask(client: openai.AsyncOpenAI, kind: str) -> None:
    if kind == "whole":
        await client.chat.completions.create(model="plain-rag", messages=ASKED)
        return
    stream: Any = await (
        client.responses.create(model="plain-rag", input=QUESTION, stream=True)
        if kind == "response"
        else client.chat.completions.create(model="plain-rag", messages=ASKED, stream=True)
    )
    async for _ in stream:
        pass


async def _settled(http: httpx.AsyncClient) -> Any:
    """Return the list of runs when none is running."""
    async with asyncio.timeout(300):
        while True:
            rows = (await http.get("/v1/runs")).json()
            if not any(row["state"] in ("running", "interrupted") for row in rows):
                return rows
            await asyncio.sleep(0.05)


async def test_marks_are_left_out_of_the_text_on_request(chat: Chat) -> None:
    async with chat() as (client, _):
        bare = {"sleuth": {"marks": False}}
        made = await client.chat.completions.create(model="plain-rag", messages=ASKED, extra_body=bare)
        message = made.choices[0].message
        assert message.content == "Edric Gannow"
        (annotation,) = message.annotations or []
        cited = annotation.url_citation
        assert (cited.start_index, cited.end_index, cited.title) == (0, len("Edric Gannow"), "The Pellowrig Light")
        response = await client.responses.create(model="plain-rag", input=QUESTION, extra_body=bare)
        assert response.output_text == "Edric Gannow"


PLANTED = "![x](https://e.org/a.png) [1] <img src=x>"


async def test_replies_have_no_image_link_or_mark_of_a_document(chat: Chat, oracle: Oracle) -> None:
    quote = f"Its builder is {PLANTED}"
    cited = [{"source": 1, "quote": quote}]
    oracle.said = lambda _request: {"answerable": True, "answer": f"Gannow {PLANTED}", "citations": cited}
    async with chat() as (client, http):
        light = {"light.md": f"# Light {PLANTED}\n\nThe Pellowrig Light stands. {quote}\n"}
        await upload(http, light)
        whole: Any = (await client.chat.completions.create(model="plain-rag", messages=ASKED)).choices[0].message
        stream = await client.chat.completions.create(model="plain-rag", messages=ASKED, stream=True)
        deltas: list[Any] = [chunk.choices[0].delta async for chunk in stream if chunk.choices]
        bare = {"sleuth": {"marks": False}}
        unmarked = (await client.chat.completions.create(model="plain-rag", messages=ASKED, extra_body=bare)).choices[0]
        texts = [
            whole.content,
            whole.reasoning_content,
            "".join(delta.content or "" for delta in deltas),
            "".join(getattr(delta, "reasoning_content", "") for delta in deltas),
            unmarked.message.content or "",
            (await client.responses.create(model="plain-rag", input=QUESTION)).output_text,
        ]
        for text in texts:
            assert "e.org" in text
            assert not re.search(r"(?<!\\)[\[<](?!\^1\])", text), text
        (part,) = [each.url_citation for each in unmarked.message.annotations or []]
        assert (part.start_index, part.end_index) == (0, len(unmarked.message.content or ""))


async def test_response_has_the_answer_its_citations_and_usage(chat: Chat) -> None:
    async with chat() as (client, http):
        made = await client.responses.create(model="plain-rag", input=QUESTION)
        assert made.output_text.startswith("Edric Gannow")
        assert (made.status, made.usage and made.usage.output_tokens) == ("completed", 13)
        (message,) = made.output
        assert message.type == "message"
        (part,) = message.content
        assert part.type == "output_text"
        (annotation,) = part.annotations
        assert annotation.type == "url_citation"
        assert (annotation.title, part.text[annotation.start_index : annotation.end_index]) == (
            "The Pellowrig Light",
            "[1]",
        )
        thread = (made.metadata or {})["thread"]
        address = urlsplit(annotation.url)
        assert f"{address.scheme}://{address.netloc}" == str(http.base_url).rstrip("/")
        place, _, query = address.fragment.partition("?")
        assert place == f"/runs/{thread}"
        assert (await http.get(annotation.url)).status_code == 200
        (passage,) = parse_qs(query)["passage"]
        assert "Gannow" in (await http.get(f"/v1/passages/{passage.replace('#', '%23')}")).json()["text"]


async def test_streamed_response_is_the_same(chat: Chat) -> None:
    async with chat() as (client, _):
        whole = await client.responses.create(model="plain-rag", input=QUESTION)
        turns: Any = [
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
        ]
        async with client.responses.stream(model="plain-rag", input=QUESTION) as stream:
            events = [event async for event in stream]
            final = await stream.get_final_response()
        assert final.output_text == whole.output_text
        assert events[0].type == "response.created"
        assert events[-1].type == "response.completed"
        assert [event.sequence_number for event in events] == list(range(len(events)))
        followed = await client.responses.create(model="plain-rag", input=turns)
        assert followed.output_text == whole.output_text


async def test_failed_run_is_a_failed_response(chat: Chat, oracle: Oracle) -> None:
    async with chat() as (client, _):
        oracle.said = lambda _request: ModelUnavailable("It is down.")
        with pytest.raises(openai.InternalServerError, match="It is down"):
            await client.responses.create(model="plain-rag", input=QUESTION)
        stream = await client.responses.create(model="plain-rag", input=QUESTION, stream=True)
        *_, last = [event async for event in stream]
        assert last.type == "response.failed"
        assert last.response.error
        assert last.response.error.message == "It is down."


FUNCTION = {"type": "function", "name": "f", "function": {"name": "f", "parameters": {}}}


@pytest.mark.parametrize(
    ("path", "given", "said"),
    [
        ("chat/completions", {"tools": [FUNCTION]}, "tools"),
        ("chat/completions", {"functions": [FUNCTION]}, "tools"),
        ("chat/completions", {"response_format": {"type": "json_object"}}, "json_object"),
        ("chat/completions", {"n": 2}, "n: "),
        ("responses", {"tools": [FUNCTION]}, "tools"),
        ("responses", {"text": {"format": {"type": "json_schema", "schema": {}}}}, "json_schema"),
        ("responses", {"background": True}, "/v1/runs"),
        ("responses", {"previous_response_id": "resp-1"}, "whole conversation"),
        ("responses", {"input": []}, "empty"),
    ],
)
async def test_what_is_not_supported_is_refused(
    chat: Chat, oracle: Oracle, path: str, given: dict[str, Any], said: str
) -> None:
    async with chat() as (_, http):
        asked = {"input": QUESTION} if path == "responses" else {"messages": [{"role": "user", "content": QUESTION}]}
        reply = await http.post(f"/v1/{path}", json={"model": "plain-rag", **asked, **given})
        assert (reply.status_code, said in reply.json()["error"]["message"]) == (400, True), reply.text
        assert oracle.requests == []
        harmless = {"tools": [], "response_format": {"type": "text"}, "text": {"format": {"type": "text"}}}
        assert (await http.post(f"/v1/{path}", json={"model": "plain-rag", **asked, **harmless})).status_code == 200


async def test_embeddings_are_those_of_the_passages(chat: Chat) -> None:
    embedder = HashingEmbedder()
    async with chat(embedder) as (client, http):
        texts = ["a light", "a mole"]
        packed = await client.embeddings.create(model="hashing", input=texts)
        plain = await client.embeddings.create(model="hashing", input="a mole", encoding_format="float")
        wanted = HashingEmbedder().embed_passages(texts)
        for row, found in zip(wanted, packed.data, strict=True):
            assert found.embedding == pytest.approx(row.tolist())
        assert plain.data[0].embedding == pytest.approx(wanted[1].tolist())
        for given in (
            {"model": "other", "input": "a"},
            {"model": "hashing", "input": ""},
            {"model": "hashing", "input": []},
        ):
            assert (await http.post("/v1/embeddings", json=given)).status_code == 400, given


async def test_server_without_an_embedder_embeds_nothing(chat: Chat) -> None:
    async with chat() as (_, http):
        reply = await http.post("/v1/embeddings", json={"model": "none", "input": "a"})
        assert (reply.status_code, "SLEUTH_EMBEDDER" in reply.json()["error"]["message"]) == (400, True)
