"""Random faults of requests to a model server."""

import json
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from random import Random

from recording_proxy import CHAT


class Fault(StrEnum):
    """Faults of a request."""

    CLOSED = "closed without a word"
    RESET = "reset in the middle of the reply"
    NO_HTTP = "not HTTP"
    BUSY_FOR = "429 with Retry-After"
    BUSY = "429"
    FAILING = "500"
    UNAVAILABLE = "503"
    SILENT = "silence"
    SILENT_MIDWAY = "silence in the middle of the reply"
    HALF_BODY = "half a JSON body"
    EMPTY = "no choices"
    NULL = "a body without what was asked for"
    DOUBLED_END = "doubled events without words"
    DOUBLED = "doubled events"
    HALF_REPLY = "half a JSON reply"
    WRONG_SCHEMA = "a reply of another schema"


CONTENT = frozenset({Fault.DOUBLED, Fault.HALF_REPLY, Fault.WRONG_SCHEMA})
"""A valid reply with other content: the result of the run may differ."""

_OF_STREAMS = frozenset({Fault.DOUBLED, Fault.DOUBLED_END})
_OF_COMPLETIONS = CONTENT | _OF_STREAMS | {Fault.EMPTY, Fault.NULL}
"""What cannot happen to a question about the server itself, nor to a probe of what it can do."""


@dataclass
class Weather:
    """Faults of one run; `rate` is the share of its requests that fail, none once it is `calm`.

    `met`: what has gone wrong on the wire. `calls`: the ids of calls as they arrived; `silent`: of those among them
    that are not answered. `silences`: how long a client waited in each, in seconds.
    """

    seed: int
    rate: float
    calm: bool = False
    met: Counter[Fault] = field(default_factory=Counter)
    calls: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    silences: list[float] = field(default_factory=list)
    _seen: Counter[str] = field(default_factory=Counter)

    def dice(self, asked: "Asked") -> Random:
        """The dice of this request at this time."""
        key = sha256(asked.path.encode() + asked.body).hexdigest()
        self._seen[key] += 1
        return Random(f"{self.seed} {key} {self._seen[key]}")

    def draw(self, asked: "Asked", dice: Random) -> Fault | None:
        """Choose the fault of a request: one that can be applied to its reply."""
        if self.calm or dice.random() >= self.rate:
            return None
        return dice.choice([fault for fault in Fault if asked.may_meet(fault)])


@dataclass(frozen=True)
class Asked:
    """A request, and the call that it is for, if any."""

    method: str
    run: str
    path: str
    call: str
    body: bytes

    @property
    def streamed(self) -> bool:
        return self.path == CHAT and bool(json.loads(self.body).get("stream"))

    def may_meet(self, fault: Fault) -> bool:
        if not self.call:
            return fault not in _OF_COMPLETIONS
        return self.streamed or fault not in _OF_STREAMS

    def plain(self) -> bytes:
        """The body of the same request for a reply in one piece."""
        if not self.streamed:
            return self.body
        body = json.loads(self.body)
        return json.dumps({name: body[name] for name in body if name not in ("stream", "stream_options")}).encode()
