"""A scripted model server for programs that embed sleuth: it also has an agent with tools, and embeddings."""

import json
from typing import Any

from recording_proxy import CHAT, Said, completion
from scripted_backend import Asked, Scripted, prompt_of
from serve_scene import QUESTION

QUOTED = [{"source": 1, "quote": "built by Edric Gannow"}]
SAID = {
    "reader/read": {"answerable": True, "answer": "Edric Gannow", "citations": QUOTED},
    "planner/plan": [{"question": QUESTION}],
    "drafter/draft": {"answer": "Edric Gannow", "citations": QUOTED},
    "reviewer/review": {"status": "PASS"},
    "evaluator/support": "yes",
    "answerer/answer": {"known": True, "answer": "Edric Gannow"},
    "rewriter/rewrite": {"question": QUESTION},
    "host/reply": {"needs_search": False, "reply": "hello"},
    "host/ask_back": {"question": "Built what?", "options": ["the light"]},
}
KINDS = {"Hello!": "small talk", "Who built it?": "ambiguous", "And the light?": "follow-up", QUESTION: "question"}


def script(asked: Asked) -> Any:
    """Return the reply of each role; the chat's router replies by the message."""
    return KINDS[asked.after("Latest message: ")] if asked.prompt == "router/route" else SAID[asked.prompt]


class WithAgent(Scripted):
    """Scripted model that is also an agent: it calls a tool, that of a sub-agent if it has one, and repeats the result.

    Without tools, it finds the builder in what it reads. Embeddings count words.
    """

    embedded: int = 0

    async def say(self, method: str, path: str, body: bytes) -> Said:
        if path == "/v1/embeddings":
            return self._embed(json.loads(body)["input"])
        asked = json.loads(body) if path == CHAT else {}
        if not asked or prompt_of(asked) or asked["model"] == "scripted":
            return await super().say(method, path, body)
        last = asked["messages"][-1]
        if last["role"] == "tool":
            return completion(f"I have looked it up: {last['content']}")
        if "tools" not in asked:
            return completion("Edric Gannow" if "Edric Gannow" in last["content"] else "Unknown.")
        names = [tool["function"]["name"] for tool in asked["tools"]]
        given = {"description": QUESTION, "subagent_type": "documents"} if "task" in names else {"question": QUESTION}
        called = {"name": "task" if "task" in names else names[0], "arguments": json.dumps(given)}
        reply = json.loads(completion("").body)
        message = reply["choices"][0]["message"]
        message["tool_calls"] = [{"id": "call-1", "type": "function", "function": called}]
        return Said(200, json.dumps(reply).encode())

    def _embed(self, texts: list[str]) -> Said:
        self.embedded += len(texts)
        words = ("light", "gannow", "born", "fair")
        rows = [[0.1 + text.lower().count(word) for word in words] for text in texts]
        data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return Said(200, json.dumps({"object": "list", "data": data, "model": "words", "usage": usage}).encode())
