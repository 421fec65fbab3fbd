"""A model for chats about a chain."""

from typing import Any

from scenes import Chain, Json, Replying

from sleuth.agents.model import Request

BACK = {"question": "Which of the two?", "options": ["the yard", "the bank"]}


class ChatModel(Replying):
    """Classifies messages as the given kinds in turn, and rewrites a follow-up as the chain's question.

    Without a `reply`, small talk needs a search after all.
    """

    def __init__(self, chain: Chain, *kinds: str, reply: str = "hello", back: Json = BACK) -> None:
        super().__init__(self._say)
        self.chain, self.kinds, self.reply, self.back = chain, list(kinds), reply, back

    def _say(self, request: Request) -> Any:
        match request.prompt:
            case "router/route":
                return self.kinds.pop(0)
            case "rewriter/rewrite":
                return {"question": self.chain.question}
            case "host/reply":
                return {"needs_search": not self.reply, "reply": self.reply or "introduction"}
            case "host/ask_back":
                return self.back
        return self.chain.reply_to(request)

    def prompts(self, start: int = 0) -> list[str]:
        return [request.prompt for request in self.requests[start:]]
