"""VERIFY: a step answered from its knowledge alone, to see how sure the model is of it (CRP-RAG, section 3.4).

What counts is the perplexity of the reply, exp of its mean negative log-probability per token; the paper prints values
below 1, which that cannot be. Plain text, since guidance would change the probabilities, of which only those of the
tokens themselves are needed.
"""

from dataclasses import dataclass, replace

from sleuth.agents.formatting import Source, number
from sleuth.agents.model import Sampling
from sleuth.agents.role import Role


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyInput:
    """A step's question and what is known about it."""

    question: str
    sources: tuple[Source, ...]


VERIFY: Role[VerifyInput, str] = Role(
    name="verifier",
    prompt="verifier/verify",
    input=VerifyInput,
    output=str,
    render=lambda given: {"sources": number(given.sources), "question": given.question},
    sampling=Sampling(max_tokens=64, temperature=0.1, top_logprobs=1),
)


def again() -> Role[VerifyInput, str]:
    """Another sample of the same, for servers that give no log-probabilities."""
    return replace(VERIFY, sampling=Sampling(max_tokens=64, temperature=1.0))
