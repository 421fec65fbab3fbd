"""Model calls of one node execution: fit the prompt, send it as a task, parse the reply, record the cost.

One `ask` is one LangGraph task, and each model call in it is a task inside: after a crash no completed call is sent
again, and a repair never changes the place of another ask. A task's place in the run determines its call's id and seed.
Concurrent asks start in order, so calls and warnings are recorded in order, independently of the order of replies.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any, Generic, NotRequired

from langgraph.config import get_config
from langgraph.func import task
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from sleuth import prompts
from sleuth.agents.formatting import Source, escape_chat_markers
from sleuth.agents.model import Message, Model, Reply, ReplyStreams, Request
from sleuth.agents.model_calls.output_parsing import Unparsable, parse_reply
from sleuth.agents.role import FOR_PEOPLE, I, O, Role
from sleuth.tools.errors import BadReply, ContextTooLong
from sleuth.tools.storage.archive import Archive
from sleuth.tools.text.language import may_be_english

REPAIR = "shared/repair"
LANGUAGE = "shared/language"

_EXCERPT = 600
"""Characters of a bad reply in the prompt of its repair."""


class CallRecord(TypedDict):
    """One model call: its role and node, its prompt (the hash of a text in the archive), and its cost."""

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
    """The outcome of one ask, the result of its task: restored as a whole after a crash."""

    reply: Reply
    failure: str | None
    calls: dict[str, CallRecord]
    warnings: list[str]


class _Sent(TypedDict):
    """The outcome of one call; without a reply if the server found the prompt too long, for this reason."""

    call_id: str
    prompt: str
    reply: Reply | None
    reason: NotRequired[str]


@dataclass(kw_only=True)
class _CallEntry:
    """The account of one ask, or of the node's own warnings between two asks."""

    calls: dict[str, CallRecord] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class ModelCaller:
    """The model calls of one node execution, and their cost.

    Usage, in a node of a running graph:

        caller = ModelCaller(model, archive, seed="a question")
        draft = await caller.ask(DRAFT, SourcesInput(question="Where is Varn?", sources=sources))
        print(draft.answer, caller.warnings)

    Attributes:
        model: answers the requests.
        archive: stores the prompts.
        seed: the seed of this execution, from which each call's seed is derived.
        streams: the streams of the replies; None if nobody subscribes.
    """

    def __init__(
        self,
        model: Model,
        archive: Archive,
        *,
        seed: str,
        limit: int | None = None,
        streams: ReplyStreams | None = None,
    ) -> None:
        """`limit` is the number of calls that the run can still afford: no repair exceeds it."""
        self.model = model
        self.archive = archive
        self.seed = seed
        self.streams = streams
        self._limit = limit
        self._ledger: list[_CallEntry] = []
        self._current: dict[asyncio.Task[Any] | None, _CallEntry] = {}
        self._started = 0

    @property
    def calls(self) -> dict[str, CallRecord]:
        """Every call by its id, in the order of the asks."""
        return {id: record for entry in self._ledger for id, record in entry.calls.items()}

    @property
    def warnings(self) -> Sequence[str]:
        """Each warning once, in the order of the asks."""
        return list(dict.fromkeys(line for entry in self._ledger for line in entry.warnings))

    def warn(self, *lines: str) -> None:
        """Add warnings to the latest ask of the running asyncio task; without one, after all warnings so far."""
        entry = self._current.get(asyncio.current_task())
        if entry is None:
            self._ledger.append(entry := _CallEntry())
        entry.warnings += lines

    async def ask(self, role: Role[I, O], input: I) -> O:
        """Return a role's typed output for an input.

        Raises:
            BadReply: the reply cannot be parsed, also after one repair; its calls are recorded.
            ContextTooLong: the prompt does not fit even without sources.
            ModelError: the server gave no usable reply.
        """
        call = self._begin(role, input)
        return call.end(await task(call.ask)())

    async def ask_or(self, role: Role[I, O], input: I, otherwise: O, loss: str) -> O:
        """Like `ask`, but return `otherwise` and warn of the loss if no reply can be parsed."""
        call = self._begin(role, input)
        try:
            return call.end(await task(call.ask)())
        except BadReply as error:
            self.warn(f"{error} {loss}")
            return otherwise

    async def ask_with_reply(self, role: Role[I, O], input: I) -> tuple[O, Reply]:
        """Like `ask`, also return the reply itself, for its log-probabilities."""
        call = self._begin(role, input)
        asked = await task(call.ask)()
        return call.end(asked), asked["reply"]

    def _begin(self, role: Role[I, O], input: I) -> "_RoleCall[I, O]":
        self._current[asyncio.current_task()] = entry = _CallEntry()
        self._ledger.append(entry)
        call = _RoleCall(self, role, input, entry, earlier=self._started)
        self._started += 1
        return call

    def can_repair(self, earlier: int) -> bool:
        """Return whether a repair fits the limit, if each of the earlier asks may need one too."""
        return self._limit is None or self._started + earlier < self._limit


class _RoleCall(Generic[I, O]):
    """One ask with its repair: the input as far as it fits the context, the cost so far, and the typed output.

    LangGraph names the tasks of a run after the methods `ask` and `call`.
    """

    def __init__(self, caller: ModelCaller, role: Role[I, O], input: I, entry: _CallEntry, *, earlier: int) -> None:
        self._caller = caller
        self._role = role
        self._input = input
        self._entry = entry
        self._node = str(get_config()["metadata"]["langgraph_node"])
        self._earlier = earlier
        self._repair: tuple[Message, ...] = ()
        self._calls: dict[str, CallRecord] = {}
        self._warnings: list[str] = []
        self._output: O | None = None

    async def ask(self) -> _Asked:
        """Ask, and ask once more with the fault if the reply cannot be used.

        If the server counts more tokens than the client, ever fewer passages are sent.
        """
        role, caller = self._role, self._caller
        await prompts.read()
        while True:
            before = self._input
            self._input = await fit_sources(
                caller.model, role.name, self._input, self._messages, reply_tokens=role.sampling.max_tokens
            )
            while (reply := (sent := await task(self.call)())["reply"]) is None:
                self._input = halve_sources(self._input, sent.get("reason", ""))
            if warning := describe_loss(before, self._input):
                self._warnings.append(f"{role.prompt}: {warning}")
            self._record(sent, reply)
            fault = self._parse(sent, reply)
            if not fault or self._repair or not caller.can_repair(self._earlier):
                break
            _, wish = prompts.load(REPAIR).render(reason=escape_chat_markers(fault))
            bad_reply = escape_chat_markers(reply["text"][:_EXCERPT]).strip() or "…"
            self._repair = Message(role="assistant", content=bad_reply), Message(role="user", content=wish)
        start = reply["text"].strip()[:80]
        quoted = f"It begins {start!r}." if start else "It is empty."
        failure = fault and f"The {role.name} gave a reply that cannot be used: {fault}. {quoted}"
        return _Asked(reply=reply, failure=failure, calls=self._calls, warnings=self._warnings)

    def end(self, asked: _Asked) -> O:
        """Record the cost of an ask that has ended, and return its output, or raise BadReply."""
        self._entry.calls |= asked["calls"]
        self._entry.warnings += asked["warnings"]
        if asked["failure"] is not None:
            raise BadReply(asked["failure"], asked["reply"]["text"])
        if self._output is None:  # the task was completed before a crash
            self._output, _ = parse_reply(self._role, asked["reply"])
        return self._output

    def _messages(self, input: I) -> tuple[Message, ...]:
        return render_messages(self._role, input) + self._repair

    def _parse(self, sent: _Sent, reply: Reply) -> str | None:
        """Keep the output of a reply, or return its fault. Tokens streamed of a reply with a fault are withdrawn."""
        role = self._role
        try:
            self._output, cuts = parse_reply(role, reply)
        except Unparsable as fault:
            if streams := self._caller.streams:
                streams.withdraw(node=self._node, role=role.name, call=sent["call_id"])
            return str(fault)
        self._warnings += [f"{role.prompt}: {cut}" for cut in cuts]
        return None

    async def call(self) -> _Sent:
        """Send the request, with an id and a seed from the place of its task: both are the same after a resume."""
        metadata, execution = get_config()["metadata"], get_runtime().execution_info
        assert execution is not None
        role, caller = self._role, self._caller
        place = f"{caller.seed}\n{metadata['langgraph_step']}\n{metadata['langgraph_path']}"
        number = int.from_bytes(sha256(place.encode("utf-8", "replace")).digest()[:4]) >> 1
        id = execution.task_id
        stream = caller.streams.listen(node=self._node, role=role.name, call=id) if caller.streams else None
        request = Request(
            call_id=id,
            role=role.name,
            prompt=role.prompt,
            messages=self._messages(self._input),
            input=asdict(self._input),
            sampling=replace(role.sampling, seed=number),
            schema=role.schema(),
            choices=role.choices,
            listener=stream,
        )
        await caller.archive.keep([request.text()])  # before it is sent
        sent = _Sent(call_id=id, prompt=request.text_hash(), reply=None)
        try:
            reply = await caller.model.call(request)
        except BaseException as error:
            if stream:
                stream.reset()
            if isinstance(error, ContextTooLong):
                return {**sent, "reason": str(error)}
            raise
        if stream:
            stream.finish(reply)
        return {**sent, "reply": reply}

    def _record(self, sent: _Sent, reply: Reply) -> None:
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
            repair=bool(self._repair),
        )
        self._warnings += reply["warnings"]


def render_messages(role: Role[I, O], input: I) -> tuple[Message, ...]:
    """Return a role's prompt for an input, as it is sent."""
    values = {name: escape_chat_markers(value) for name, value in role.render(input).items()}
    system, user = prompts.load(role.prompt).render(**values)
    question = values.get("question", "")
    if role.name in FOR_PEOPLE and question and not may_be_english(question):
        user += f"\n\n{prompts.load(LANGUAGE).user.strip()}"
    opening = (Message(role="system", content=system),) if system else ()
    begun = role.begun(input) if role.begun else ""
    ending = (Message(role="assistant", content=begun),) if begun else ()
    return (*opening, Message(role="user", content=user), *ending)


_TEMPLATE = 64
"""Tokens that a chat template may add, in all and once more per message."""

_SHORTEST = 200
"""Characters below which a passage is not cut."""

Build = Callable[[I], tuple[Message, ...]]


async def fit_sources(model: Model, role: str, input: I, build: Build[I], *, reply_tokens: int) -> I:
    """Return the input with as many of its sources as leave room for the reply.

    Args:
        model: counts the tokens; only asked if the prompt has more bytes than fit, as a token is at least one byte.
        role: the role's name.
        input: the input of the role.
        build: renders an input.
        reply_tokens: tokens reserved for the reply.

    Raises:
        ContextTooLong: the prompt does not fit even without sources.
    """
    room = model.context_window - reply_tokens
    while True:
        messages = build(input)
        most = _TEMPLATE + sum(len(message["content"].encode("utf-8", "replace")) + _TEMPLATE for message in messages)
        if most <= room or await model.count_tokens(messages, role=role) <= room:
            return input
        input = _with(input, _smaller(sources_of(input)))


def halve_sources(input: I, reason: str) -> I:
    """Return the input with half its sources, or half of its only one; raise ContextTooLong if it has none.

    `reason` is that of the server, which found the prompt too long.
    """
    sources = sources_of(input)
    try:
        return _with(input, sources[: (len(sources) + 1) // 2] if len(sources) > 1 else _smaller(sources))
    except ContextTooLong as error:
        raise ContextTooLong(f"{reason} {error}".strip()) from error


def sources_of(input: object) -> tuple[Source, ...]:
    """Return the passages of a role's input; empty if it has none."""
    sources: tuple[Source, ...] = getattr(input, "sources", ())
    return sources


def describe_loss(before: object, after: object) -> str | None:
    """Return a warning that describes the passages dropped or cut; None if there are none."""
    had, has = sources_of(before), sources_of(after)
    if had == has:
        return None
    cut = sum(old != new for old, new in zip(had, has, strict=False))
    shortened = f" and {cut} shortened" if cut else ""
    return f"{len(had) - len(has)} of {len(had)} passages left out{shortened}: the model's context is too small"


def _smaller(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """Return the sources with the longest one halved if it outweighs all others, else without the last one."""
    longest = max((len(source.text) for source in sources), default=0)
    if longest > _SHORTEST and longest * 2 > sum(len(source.text) for source in sources):
        half = longest // 2
        return tuple(
            replace(source, text=source.text[:half]) if len(source.text) == longest else source for source in sources
        )
    if len(sources) > 1:
        return sources[:-1]
    raise ContextTooLong("The question is too long for the model's context: shorten it, or use a larger model.")


def _with(input: I, sources: tuple[Source, ...]) -> I:
    changed: Any = {"sources": sources}
    return replace(input, **changed)
