"""DOMAIN and DYNAMIC: a question's attributes by demonstrations and a vote (CRAG's hybrid system, section 4.2)."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from sleuth.agents.model import Sampling
from sleuth.agents.model_calls import Desk
from sleuth.agents.role import Role
from sleuth.tools.errors import BadReply
from sleuth.tools.sources.question_attributes import DOMAINS, Attributes, Domain
from sleuth.tools.sources.question_attributes.examples import Example, packaged_examples, select_demonstrations

DEMONSTRATIONS = 5
"""For each domain, and for static and for dynamic (section 4.2)."""

SAMPLES = 5
"""Votes for each attribute; the paper says "multiple"."""

STATIC, CHANGING = "static", "dynamic"

_DRAWN = Sampling(max_tokens=8, temperature=0.7)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifyInput:
    """A question, and questions that were labelled by hand."""

    question: str
    examples: tuple[Example, ...]


def _render(given: ClassifyInput, asked: str, labels: Sequence[str]) -> dict[str, str]:
    shown = [
        f"Question: {example.question}\n{asked}: {label}" for example, label in zip(given.examples, labels, strict=True)
    ]
    return {"examples": "\n\n".join(shown), "question": " ".join(given.question.split())}


DOMAIN: Role[ClassifyInput, str] = Role(
    name="classifier",
    prompt="classifier/domain",
    input=ClassifyInput,
    output=str,
    render=lambda given: _render(given, "Domain", [example.domain for example in given.examples]),
    sampling=_DRAWN,
    choices=DOMAINS,
)

DYNAMIC: Role[ClassifyInput, str] = Role(
    name="classifier",
    prompt="classifier/dynamic",
    input=ClassifyInput,
    output=str,
    render=lambda given: _render(
        given, "Static or dynamic", [CHANGING if example.dynamic else STATIC for example in given.examples]
    ),
    sampling=_DRAWN,
    choices=(STATIC, CHANGING),
)


class InContextPredictor:
    """Asks the model several times for each attribute; the value that most samples name is taken."""

    def __init__(self, asking: Desk, *, samples: int = SAMPLES) -> None:
        self._asking = asking
        self._samples = samples

    @property
    def calls(self) -> int:
        """How many model calls a prediction takes, without repairs."""
        return 2 * self._samples

    async def predict(self, question: str) -> Attributes:
        """The attributes of one question.

        Raises:
            BadReply: no sample for one of them can be understood.
            ModelError: the server gave no usable reply.
        """
        of_domains, of_change = select_demonstrations(await asyncio.to_thread(packaged_examples), each=DEMONSTRATIONS)
        (domain, domain_lead), (change, dynamic_lead) = await asyncio.gather(
            self._vote(DOMAIN, ClassifyInput(question=question, examples=of_domains)),
            self._vote(DYNAMIC, ClassifyInput(question=question, examples=of_change)),
        )
        return Attributes(
            domain=cast(Domain, domain),
            dynamic=change == CHANGING,
            domain_lead=domain_lead,
            dynamic_lead=dynamic_lead,
        )

    async def _vote(self, role: Role[ClassifyInput, str], given: ClassifyInput) -> tuple[str, float]:
        """The winner, and its lead over the second as a share of the votes; of equals the first in the role's order."""
        cast_votes = await asyncio.gather(
            *(self._asking.ask(role, given) for _ in range(self._samples)), return_exceptions=True
        )
        faults = [vote for vote in cast_votes if isinstance(vote, BaseException)]
        votes = Counter({choice: cast_votes.count(choice) for choice in role.choices or ()})
        for fault in faults:
            if not isinstance(fault, BadReply) or not votes.total():
                raise fault
            self._asking.warn(f"{fault} The vote goes on without this sample.")
        (winner, most), (_, next_most) = votes.most_common(2)
        return winner, (most - next_most) / votes.total()
