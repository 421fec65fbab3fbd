"""A Chainlit chat over `sleuth serve`: `pip install chainlit openai`, then chainlit run chainlit_chat.py.

SLEUTH_SERVER sets the server (default http://127.0.0.1:8100/v1), SLEUTH_METHOD the method (default auto).
"""

import os

import chainlit
from openai import AsyncOpenAI

URL = os.environ.get("SLEUTH_SERVER", "http://127.0.0.1:8100/v1")
METHOD = os.environ.get("SLEUTH_METHOD", "auto")

client = AsyncOpenAI(base_url=URL, api_key="none")  # or your API key


@chainlit.on_message
async def answer(_message: chainlit.Message) -> None:
    """Answer the conversation so far; show the steps above the answer."""
    turns = chainlit.chat_context.to_openai()
    reply = chainlit.Message(content="")
    async with chainlit.Step(name="Steps") as steps:
        async for chunk in await client.chat.completions.create(model=METHOD, messages=turns, stream=True):
            delta = chunk.choices[0].delta if chunk.choices else None
            if step := getattr(delta, "reasoning_content", None):
                await steps.stream_token(step)
            if delta and delta.content:
                await reply.stream_token(delta.content)
    await reply.send()
