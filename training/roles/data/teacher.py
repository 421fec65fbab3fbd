"""Teacher of the roles: records the right reply to each call of a run, which continues with the student's errors.

The examples therefore cover situations after earlier errors, and every reply in them is right for its prompt (the idea
of DAgger: Ross, Gordon and Bagnell, 2011).
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sleuth.agents.model import Message, Reply, Request
from sleuth.agents.model_calls.caller import render_messages
from sleuth.agents.role import I, Role
from sleuth.agents.roles.judging import VERIFY
from sleuth.agents.roles.planning import EXPAND, PLAN
from sleuth.agents.roles.reading import DRAFT, EXTRACT, Extraction
from sleuth.agents.roles.reasoning import REQUERY
from training.roles.data.teaching import TeachingModel, broaden
from training.roles.data.wording import guided, is_awkward, paraphrase_naturally
from training.simulation import Gold, Simulation
from training.simulation.wording import find_names, mentions

Facts = Callable[[Gold, str, str], Extraction]
"""Extraction of a passage's triples, by its title and text, in the run on a question."""

FAULTLESS = Simulation(rates={}, yes_odds=6.0, yes_spread=0.0, rephrase=0.0)
"""Errs nowhere, and is sure of every yes and no."""

_SURE = (0.1, 0.9)
"""P(yes) of a No and of a Yes; what lies between is neither."""
_PERPLEXED = 2.5
"""The perplexity above which an answer has no support: the simulation draws it around 1.25 or 8."""
_NOT_TOLD = re.compile(
    r'"(?:answer|knowledge)":""|"(?:answerable|known)":false|"status":"UNCONFIDENT"|"inferences":\[\]|"finding":""'
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One call: the messages and the expected reply; `question` is the id of the run's question.

    `set` is the question's file, `hops` its number of hops (0 without a question). `told` is false if the sources do
    not contain the answer.
    """

    set: str
    hops: int
    question: str
    role: str
    prompt: str
    messages: tuple[Message, ...]
    reply: str
    told: bool = True

    @classmethod
    def of(cls, role: Role[I, Any], given: I, reply: str, *, set: str, hops: int, question: str) -> "Example":
        """Return a role asked by itself, with the prompt that it has in use."""
        sent = render_messages(role, given)
        return cls(
            set=set, hops=hops, question=question, role=role.name, prompt=role.prompt, messages=sent, reply=reply
        )


class Learned(NamedTuple):
    """An example, and what its role was given, as plain JSON."""

    example: Example
    given: dict[str, Any]


def uses_later_information(example: Example) -> bool:
    """Return whether a plan contains a name that no step has found yet, as if gold has two names for one thing."""
    if example.prompt not in (PLAN.prompt, EXPAND.prompt):
        return False
    said = json.loads(example.reply)
    asked = " ".join(step["question"] for step in said["steps"]) if "steps" in said else str(said["step"])
    return not all(mentions(example.messages[-1]["content"], name) for name in find_names(asked))


class Teacher:
    """The model of one question's run; `student` adds the errors with which the run continues."""

    def __init__(
        self, set: str, gold: Gold, student: Simulation, facts: Facts, *, closed_book: Mapping[str, float] | None = None
    ) -> None:
        self.learned: list[Learned] = []
        self._set = set
        self._facts = facts
        self._faultless = TeachingModel(gold, FAULTLESS.model_copy(update={"rates": dict(closed_book or {})}))
        self._student = TeachingModel(gold, student)

    @property
    def context_window(self) -> int:
        """The student's."""
        return self._student.context_window

    async def call(self, request: Request) -> Reply:
        """Return the student's reply; record the right one as an example, unless it is undecidable."""
        if request.prompt == EXTRACT.prompt:
            return await self._read(request)
        right = await self._faultless.call(request)
        example = self._example(request, right)
        if self._teaches(example, right):
            self.learned.append(Learned(example, request.input))
        return await self._student.call(request)

    async def _read(self, request: Request) -> Reply:
        """Return a passage's known triples, whatever the question; not recorded as an example."""
        (source,) = request.input["sources"]
        said = await self._student.call(request)
        text = self._facts(self._student.gold, source["title"], source["text"]).model_dump_json()
        return Reply(**{**said, "text": text})

    def _teaches(self, example: Example, right: Reply) -> bool:
        """Return whether a reply is decided and worded well, and a model could know it."""
        first = right["logprobs"][0]["top"] if right["logprobs"] else {}
        is_undecided = "Yes" in first and _SURE[0] < math.exp(first["Yes"]) < _SURE[1]
        # A draft always has text, and the right guess is undefined.
        is_blank = example.prompt == DRAFT.prompt and not example.told
        # The run has continued although nothing is missing.
        is_idle = example.prompt == REQUERY.prompt and broaden(self._student.gold.question) in example.reply
        text = " ".join(each["content"] for each in example.messages) + example.reply
        return not (is_undecided or is_blank or is_idle or is_awkward(text) or uses_later_information(example))

    def _example(self, request: Request, right: Reply) -> Example:
        sent = tuple(
            Message(role=each["role"], content=paraphrase_naturally(each["content"])) for each in request.messages
        )
        said = guided(paraphrase_naturally(right["text"]), request.schema)
        tokens = right["logprobs"] or []
        is_guess = request.prompt == VERIFY.prompt and tokens and math.exp(-tokens[0]["logprob"]) > _PERPLEXED
        return Example(
            set=self._set,
            hops=len(self._student.gold.hops),
            question=self._student.gold.id,
            role=request.role,
            prompt=request.prompt,
            messages=sent,
            reply=said,
            told=not (_NOT_TOLD.search(said) or is_guess),
        )

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the simulation's token count."""
        return await self._student.count_tokens(messages, role=role)
