"""Roles that read passages, answered by the evidence checker in place of a language model. No paper has it.

This is the default without a model server and with the demo model, which reads no better: it then only plans, rewrites
and concludes. SLEUTH_MODELS gives a role to the checker by the name `evidence-checker`.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from sleuth.agents.formatting import MAX_QUOTE, Quote
from sleuth.agents.model import DEMO_MODEL, EVIDENCE_CHECKER, Message, NamedModel, Reply, Request, Usage
from sleuth.agents.role import Output
from sleuth.agents.roles.judging import REVIEW, REVIEW_STEP, StepReview
from sleuth.agents.roles.reading import ANSWER_WITH_SOURCES, CITE, DRAFT, DRAFT_SENTENCE, READ, Cited, Draft, Final
from sleuth.agents.roles.reading import Reading as ReadReply
from sleuth.graphs.evidence.check import GOOD_SUPPORT, MIN_SUPPORT, as_evidence, support_of
from sleuth.graphs.evidence.citations import cite_reading
from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker import EvidenceChecker
from sleuth.tools.evidence_checker.checker import Reading
from sleuth.tools.types import Passage

ROLES = ("reader", "drafter", "reviewer", "answerer")
"""The roles that the checker can take, as far as their prompts show passages."""

Inputs: TypeAlias = Mapping[str, Any]
"""The input of a role, as plain JSON."""
MakeReply: TypeAlias = Callable[[Inputs, Reading, list[Quote]], Output]
"""Returns a role's reply for what the checker has read, with its quotes."""


class ReadingModel:
    """A model that lets the evidence checker answer some roles, and another model all others.

    Usage:

        model = ReadingModel(client, EvidenceChecker.load(), roles=("reader",))
        reply = await model.call(request)  # of the role "reader": no server is asked
        print(reply["model"])  # evidence-checker
    """

    def __init__(self, model: NamedModel, checker: EvidenceChecker, roles: Sequence[str] = ROLES) -> None:
        """Set the model of all other calls, the checker, and the checker's roles."""
        self._model = model
        self._checker = checker
        self._roles = frozenset(roles)

    @property
    def context_window(self) -> int:
        """The context window of the other model."""
        return self._model.context_window

    def name_of(self, role: str) -> str:
        """Return the name of a role's model."""
        return EVIDENCE_CHECKER if role in self._roles else self._model.name_of(role)

    async def call(self, request: Request) -> Reply:
        """Answer one request.

        Raises:
            ModelError: the other model has no usable reply.
        """
        make_reply = _REPLIES.get(request.prompt) if request.role in self._roles else None
        if make_reply is None:
            return await self._model.call(request)
        begun, question = time.monotonic(), request.input["question"]
        passages = [_as_passage(at, source) for at, source in enumerate(request.input["sources"], start=1)]
        reading = await asyncio.to_thread(self._checker.read, question, as_evidence(passages))
        citations = cite_reading(question, reading, passages)
        quotes = [Quote(source=int(citation["passage"]), quote=citation["quote"][:MAX_QUOTE]) for citation in citations]
        return Reply(
            text=json.dumps(make_reply(request.input, reading, quotes).model_dump(), ensure_ascii=False),
            finish="stop",
            model=EVIDENCE_CHECKER,
            usage=Usage(prompt_tokens=0, cached_tokens=0, completion_tokens=0),
            seconds=time.monotonic() - begun,
            logprobs=None,
            warnings=[],
        )

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the tokens of a prompt; 0 for a role of the checker, which has no context window."""
        return 0 if role in self._roles else await self._model.count_tokens(messages, role=role)


def with_reading_roles(model: NamedModel, checker: EvidenceChecker, models: Mapping[str, str]) -> NamedModel:
    """Return the model with the checker in its roles.

    Args:
        model: the model; the demo model and a missing one leave all roles that read to the checker by default.
        checker: the evidence checker.
        models: SLEUTH_MODELS: the name of the model for some roles.

    Raises:
        UsageError: the checker is given a role that it cannot take.
    """
    wrong = [role for role, name in models.items() if name == EVIDENCE_CHECKER and role not in ROLES]
    if wrong:
        raise UsageError(
            f"The {EVIDENCE_CHECKER} cannot be the {wrong[0]}, only {', '.join(ROLES)}: see SLEUTH_MODELS."
        )
    default = EVIDENCE_CHECKER if model.name_of("default") in (DEMO_MODEL, "") else ""
    roles = [role for role in ROLES if models.get(role, default) == EVIDENCE_CHECKER]
    return ReadingModel(model, checker, roles) if roles else model


def _as_passage(number: int, source: Mapping[str, str]) -> Passage:
    text = source["text"]
    return Passage(id=str(number), document_id="", title=source["title"], text=text, start=0, end=len(text))


def _support(inputs: Inputs, reading: Reading) -> float:
    return support_of(inputs["question"], reading.answer, reading)


def _read(inputs: Inputs, reading: Reading, quotes: list[Quote]) -> Output:
    if _support(inputs, reading) < MIN_SUPPORT:
        return ReadReply(answerable=False)
    return ReadReply(answerable=True, answer=reading.answer, citations=quotes)


def _cite(inputs: Inputs, reading: Reading, quotes: list[Quote]) -> Output:
    is_read = support_of(inputs["question"], inputs["answer"], reading) >= MIN_SUPPORT
    return Cited(citations=quotes if is_read else [])


def _draft(inputs: Inputs, reading: Reading, quotes: list[Quote]) -> Output:
    return Draft(answer=reading.answer, citations=quotes)


def _draft_sentence(inputs: Inputs, reading: Reading, quotes: list[Quote]) -> Output:
    return Draft(answer=quotes[-1].quote if quotes else reading.answer, citations=quotes)


def _review(inputs: Inputs, reading: Reading, quotes: list[Quote]) -> Output:
    read = _support(inputs, reading)
    if read < GOOD_SUPPORT or read <= support_of(inputs["question"], inputs["answer"], reading):
        return StepReview(status="PASS")
    return StepReview(status="REVISED", answer=reading.answer, citations=quotes)


def _answer(inputs: Inputs, reading: Reading, quotes: list[Quote]) -> Output:
    """Answer from the passages; where they support none, with the finding of the last step."""
    findings = [step["answer"] for step in inputs["trajectory"] if step["answer"] != "not found"]
    if _support(inputs, reading) >= MIN_SUPPORT or not findings:
        return Final(known=bool(reading.answer), answer=reading.answer)
    return Final(known=True, answer=findings[-1])


_REPLIES: Mapping[str, MakeReply] = {
    READ.prompt: _read,
    CITE.prompt: _cite,
    DRAFT.prompt: _draft,
    DRAFT_SENTENCE.prompt: _draft_sentence,
    REVIEW.prompt: _review,
    REVIEW_STEP.prompt: _review,
    ANSWER_WITH_SOURCES.prompt: _answer,
}
