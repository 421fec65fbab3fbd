"""A Gradio chat over `sleuth serve`: `pip install gradio openai`, then python gradio_chat.py [URL] [METHOD]."""

import sys
from collections.abc import Iterator

import gradio
from openai import OpenAI

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8100/v1"
METHOD = sys.argv[2] if len(sys.argv) > 2 else "par-rag"

client = OpenAI(base_url=URL, api_key="none")  # or your API key


def reply(message: str, history: list[dict]) -> Iterator[str]:
    turns = [{"role": turn["role"], "content": _text(turn["content"])} for turn in history]
    text = ""
    for chunk in client.chat.completions.create(
        model=METHOD, messages=[*turns, {"role": "user", "content": message}], stream=True
    ):
        delta = chunk.choices[0].delta if chunk.choices else None
        step = getattr(delta, "reasoning_content", None)
        text += (delta.content or "") if delta else ""
        if step and not text:
            yield f"*{step.strip()} …*"
        elif text:
            yield text


def _text(content: str | list[dict]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


if __name__ == "__main__":
    gradio.ChatInterface(reply, title="Ask your documents").launch()
