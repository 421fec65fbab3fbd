"""A model that somebody can chat with about a chain."""

from typing import Any

from scenes import Chain, Replying

from sleuth.agents.model import Request

BACK = {"question": "Which of the two?", "options": ["the yard", "the bank"]}


class Companion(Replying):
    """Knows the chain; a message is what it is told to be, a follow-up asks the chain's question."""

    def __init__(self, chain: Chain, *kinds: str) -> None:
        super().__init__(self._say)
        self.chain, self.kinds = chain, list(kinds)

    def _say(self, request: Request) -> Any:
        match request.prompt:
            case "router/route":
                return self.kinds.pop(0)
            case "rewriter/rewrite":
                return {"question": self.chain.question}
            case "host/reply":
                return "Hello! What would you like to know?"
            case "host/ask_back":
                return BACK
        return self.chain.reply_to(request)

    def prompts(self, start: int = 0) -> list[str]:
        return [request.prompt for request in self.requests[start:]]
