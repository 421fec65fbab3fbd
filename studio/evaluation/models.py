"""The budget of an evaluation, and the model that keeps it."""

import time
from dataclasses import dataclass, field

from sleuth.agents.model import Message, Model, Reply, Request
from sleuth.graphs.core.context import Budget
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

    def require(self) -> None:
        """Count one more call; raise BudgetSpent where there is none left."""
        spent = {"calls": self.calls, "tokens": self.tokens, "seconds": time.monotonic() - self.began}
        for name, amount in spent.items():
            limit = getattr(self.limits, f"max_{name}")
            if limit is not None and amount >= limit:
                raise BudgetSpent(f"the {limit:,} {name} of --max-{name} are spent")
        self.calls += 1


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationModel:
    """Model that checks the evaluation's budget before each call."""

    model: Model
    allowance: EvaluationBudget

    @property
    def context_window(self) -> int:
        """That of the model."""
        return self.model.context_window

    async def call(self, request: Request) -> Reply:
        """Return one reply; raise BudgetSpent instead of a call too many."""
        self.allowance.require()
        reply = await self.model.call(request)
        self.allowance.tokens += reply["usage"]["prompt_tokens"] + reply["usage"]["completion_tokens"]
        return reply

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the model's token count."""
        return await self.model.count_tokens(messages, role=role)
