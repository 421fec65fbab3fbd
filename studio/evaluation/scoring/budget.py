"""Budget of a whole evaluation: a model that counts the calls of all runs together and stops at the limits."""

import time
from dataclasses import dataclass, field

from sleuth.agents.model import Message, Model, Reply, Request
from sleuth.graphs.core import Budget
from sleuth.tools.errors import RunError


class BudgetSpent(RunError):
    """The evaluation's budget is spent; finished runs are kept, and a larger budget resumes."""


@dataclass(kw_only=True)
class EvaluationBudget:
    """The limits, and what is spent so far; seconds count from the start of this command."""

    limits: Budget
    calls: int = 0
    tokens: int = 0
    began: float = field(default_factory=time.monotonic)

    def spend(self, calls: int, tokens: int) -> None:
        """Count what runs have spent."""
        self.calls += calls
        self.tokens += tokens

    def require(self) -> None:
        """Count one more call; raises AllowanceSpent where there is none left."""
        limits = self.limits
        if limits.max_calls is not None and self.calls >= limits.max_calls:
            raise BudgetSpent(f"the {limits.max_calls:,} model calls of --max-calls are made")
        if limits.max_tokens is not None and self.tokens >= limits.max_tokens:
            raise BudgetSpent(f"the {limits.max_tokens:,} tokens of --max-tokens are spent")
        if limits.max_seconds is not None and time.monotonic() - self.began >= limits.max_seconds:
            raise BudgetSpent(f"the {limits.max_seconds:g} seconds of --max-seconds are over")
        self.calls += 1


class MeteredModel:
    """A model that asks the allowance before each call."""

    def __init__(self, model: Model, allowance: EvaluationBudget) -> None:
        self._model = model
        self._allowance = allowance

    @property
    def context_window(self) -> int:
        """That of the model."""
        return self._model.context_window

    async def call(self, request: Request) -> Reply:
        """Return one reply of the model; raises AllowanceSpent instead of a call too many."""
        self._allowance.require()
        reply = await self._model.call(request)
        self._allowance.tokens += reply["usage"]["prompt_tokens"] + reply["usage"]["completion_tokens"]
        return reply

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the model's token count."""
        return await self._model.count_tokens(messages, role=role)
