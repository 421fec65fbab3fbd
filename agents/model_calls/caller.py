"""Where a node meets the model: prompts budgeted, kept and sent as tasks, replies parsed, everything accounted for.

One logical ask is one LangGraph task, and each model call in it a task inside: after a crash no completed call is sent
again, and a repair never shifts the place of another ask. A task's place in the run gives its call's id and seed.
Asks side by side begin in their order, and so stand what they cost and warn of, whichever reply came first.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any, Generic

from langgraph.config import get_config
from langgraph.func import task
from typing_extensions import TypedDict

from sleuth import prompts
from sleuth.agents.formatting import unmarked
from sleuth.agents.llm import Hearing
from sleuth.agents.model import Message, Model, Reply, Request
from sleuth.agents.model_calls.context_fitting import fit, halve, loss
from sleuth.agents.model_calls.output_parsing import Unparsable, parse_in_thread
from sleuth.agents.role import I, O, Role
from sleuth.tools.errors import BadReply, ContextTooLong
from sleuth.tools.storage import Archive
from sleuth.tools.text import sanitize

REPAIR = "shared/repair"

_SHOWN = 600
"""Characters of a bad reply that its repair is shown."""


class CallRecord(TypedDict):
    """One model call: who made it and where, what it was sent (a text in the archive), and what it cost."""

    role: str
    node: str
    prompt: str
    version: str
    model: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float
    repair: bool


class _Asked(TypedDict):
    """The outcome of one ask, as its task's result: restored as a whole after a crash."""

    reply: Reply
    failure: str | None
    calls: dict[str, CallRecord]
    warnings: list[str]


class _Sent(TypedDict):
    """The outcome of one call; no reply where the server found the prompt too long."""

    call_id: str
    prompt: str
    reply: Reply | None


@dataclass(kw_only=True)
class _Entry:
    """One ask in the desk's book, or a line of the node's own between two asks.

    `ahead`: calls that may have been spent on repairs when it began, if each ask beside it takes one.
    """

    calls: dict[str, CallRecord] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    ahead: int = 0


class Desk:
    """What one node says to the model in one execution, and what it cost."""

    def __init__(
        self, model: Model, archive: Archive, *, seed: str, limit: int | None = None, hearing: Hearing | None = None
    ) -> None:
        """`limit` is how many calls the run can still afford: a repair beyond it is not made."""
        self.model = model
        self.archive = archive
        self.seed = seed
        self.hearing = hearing
        self._limit = limit
        self._book: list[_Entry] = []
        self._latest: dict[asyncio.Task[Any] | None, _Entry] = {}
        self._begun = self._under_way = self._repairs = 0

    @property
    def calls(self) -> dict[str, CallRecord]:
        """Every call by its id, in the order of the asks."""
        return {id: record for entry in self._book for id, record in entry.calls.items()}

    @property
    def warnings(self) -> Sequence[str]:
        """A line each, in the order of the asks."""
        return list(dict.fromkeys(line for entry in self._book for line in entry.warnings))

    def warn(self, *lines: str) -> None:
        """Adds lines to the latest ask of the same line of work (an asyncio task); without one, after all so far."""
        entry = self._latest.get(asyncio.current_task())
        if entry is None:
            self._book.append(entry := _Entry())
        entry.warnings += lines

    async def ask(self, role: Role[I, O], given: I) -> O:
        """One typed answer.

        Raises:
            BadReply: not to be understood, also after one repair; its calls are accounted for.
            ContextTooLong: the prompt does not fit even without sources.
            ModelError: the server gave no usable reply.
        """
        return (await self.consult(role, given))[0]

    async def consult(self, role: Role[I, O], given: I) -> tuple[O, Reply]:
        """Like `ask`, with the reply itself, for its log-probabilities."""
        entry = self._begin()
        asking = _Ask(self, role, given, node=str(get_config()["metadata"]["langgraph_node"]), ahead=entry.ahead)

        @task
        async def ask() -> _Asked:
            return await asking.run()

        try:
            asked = await ask()
        finally:
            self._under_way -= 1
        self._repairs += len(asked["calls"]) - 1
        entry.calls |= asked["calls"]
        entry.warnings += asked["warnings"]
        if asked["failure"] is not None:
            raise BadReply(asked["failure"], asked["reply"]["text"])
        return await _parsed(role, asked["reply"]), asked["reply"]

    def _begin(self) -> _Entry:
        entry = _Entry(ahead=self._repairs + self._under_way)
        self._book.append(entry)
        self._latest[asyncio.current_task()] = entry
        self._begun += 1
        self._under_way += 1
        return entry

    def affords_repair(self, ahead: int) -> bool:
        """Whether the limit has room for one, whatever the asks ahead need: so the first to reply takes no other's."""
        return self._limit is None or self._begun + ahead < self._limit


class _Ask(Generic[I, O]):
    """One ask in the making: what is left of its input, and what it has cost so far."""

    def __init__(self, desk: Desk, role: Role[I, O], given: I, *, node: str, ahead: int) -> None:
        self._desk = desk
        self._role = role
        self._given = given
        self._node = node
        self._ahead = ahead
        self._calls: dict[str, CallRecord] = {}
        self._warnings: list[str] = []

    async def run(self) -> _Asked:
        """Asks, and once more with the fault named if the reply cannot be used."""
        await prompts.read(self._role.prompt, REPAIR)
        reply = await self._attempt()
        fault = await self._judge(reply)
        if fault and self._desk.affords_repair(self._ahead):
            reply = await self._attempt(_repair(reply, fault))
            fault = await self._judge(reply)
        failure = fault and f"The {self._role.name} gave a reply that cannot be used: {fault}. {_beginning(reply)}"
        return _Asked(reply=reply, failure=failure, calls=self._calls, warnings=self._warnings)

    async def _judge(self, reply: Reply) -> str | None:
        """The latest reply's fault; what was heard of one that has one does not stand."""
        fault = await _fault(self._role, reply)
        if fault and self._desk.hearing:
            self._desk.hearing.take_back(node=self._node, role=self._role.name, call=[*self._calls][-1])
        return fault

    async def _attempt(self, repair: tuple[Message, ...] = ()) -> Reply:
        """One reply; where the server's tokenizer sees more tokens than ours, a second call with half the passages."""
        fitted = await fit(
            self._desk.model,
            self._role.name,
            self._given,
            lambda given: messages(self._role, given) + repair,
            reply_tokens=self._role.sampling.max_tokens,
        )
        self._shrink(fitted)
        sent = await self._send(repair)
        if sent["reply"] is None:
            self._shrink(halve(self._given))
            sent = await self._send(repair)
        if sent["reply"] is None:
            raise ContextTooLong("The model server finds the prompt too long, also with half of the passages left out.")
        self._account(sent, sent["reply"], repair=bool(repair))
        return sent["reply"]

    def _shrink(self, given: I) -> None:
        if warning := loss(self._given, given):
            self._warnings.append(f"{self._role.prompt}: {warning}")
        self._given = given

    async def _send(self, repair: tuple[Message, ...]) -> _Sent:
        """One call as a task of its own, its prompt kept before it goes out."""
        request = _request(self._role, self._given, repair)
        await self._desk.archive.keep([request.text()])

        @task
        async def call() -> _Sent:
            placed = _place(request, self._desk.seed)
            try:
                with self._heard(placed) as heard:
                    reply = await self._desk.model.call(heard)
            except ContextTooLong:
                return _Sent(call_id=placed.call_id, prompt=placed.text_hash(), reply=None)
            kept: Reply = {**reply, "text": sanitize(reply["text"])}
            return _Sent(call_id=placed.call_id, prompt=placed.text_hash(), reply=kept)

        return await call()

    def _heard(self, request: Request) -> AbstractContextManager[Request]:
        hearing = self._desk.hearing
        return hearing.of(request, node=self._node) if hearing else nullcontext(request)

    def _account(self, sent: _Sent, reply: Reply, *, repair: bool) -> None:
        self._calls[sent["call_id"]] = CallRecord(
            role=self._role.name,
            node=self._node,
            prompt=sent["prompt"],
            version=prompts.load(self._role.prompt).version,
            model=reply["model"],
            prompt_tokens=reply["usage"]["prompt_tokens"],
            cached_tokens=reply["usage"]["cached_tokens"],
            completion_tokens=reply["usage"]["completion_tokens"],
            seconds=reply["seconds"],
            repair=repair,
        )
        self._warnings += reply["warnings"]


def messages(role: Role[I, O], given: I) -> tuple[Message, ...]:
    """A role's prompt for an input, as it is sent."""
    values = {name: unmarked(value) for name, value in role.render(given).items()}
    system, user = prompts.load(role.prompt).render(**values)
    opening = (Message(role="system", content=system),) if system else ()
    return (*opening, Message(role="user", content=user))


def _request(role: Role[I, O], given: I, repair: tuple[Message, ...]) -> Request:
    return Request(
        call_id="",
        role=role.name,
        prompt=role.prompt,
        messages=messages(role, given) + repair,
        input=asdict(given),
        sampling=role.sampling,
        schema=role.schema(),
        choices=role.choices,
    )


def _place(request: Request, seed: str) -> Request:
    """The request with its id and seed from the place of the running task: both are the same after a resume."""
    config = get_config()
    metadata: dict[str, Any] = config["metadata"]
    place = f"{seed}\n{metadata['langgraph_step']}\n{metadata['langgraph_path']}"
    number = int.from_bytes(sha256(place.encode("utf-8", "replace")).digest()[:4]) >> 1
    call_id = str(config["configurable"]["__pregel_task_id"])
    return replace(request, call_id=call_id, sampling=replace(request.sampling, seed=number))


def _repair(reply: Reply, fault: str) -> tuple[Message, ...]:
    """What follows the first prompt: the bad reply, and what is wrong with it."""
    _, wish = prompts.load(REPAIR).render(reason=unmarked(fault))
    shown = unmarked(reply["text"][:_SHOWN]).strip() or "…"
    return (Message(role="assistant", content=shown), Message(role="user", content=wish))


async def _parsed(role: Role[I, O], reply: Reply) -> O:
    cut_off = reply["finish"] == "length"
    return await parse_in_thread(reply["text"], role.output, choices=role.choices, cut_off=cut_off)


async def _fault(role: Role[I, O], reply: Reply) -> str | None:
    try:
        await _parsed(role, reply)
    except Unparsable as fault:
        return str(fault)
    return None


def _beginning(reply: Reply) -> str:
    return f"It begins {reply['text'].strip()[:80]!r}." if reply["text"].strip() else "It is empty."
