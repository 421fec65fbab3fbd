"""A question for every method with the replies of a model: the trials of the kills, and of the other methods."""

import json
from dataclasses import dataclass, replace
from typing import Any

from fault_scenarios import BROKEN, CHAT, QUESTION, TRIALS, Trial, talked
from recording_proxy import CHAT as CHAT_PATH
from recording_proxy import Said, completion
from scripted_backend import KNOWN, Asked, Scripted, Sure

from sleuth.graphs.registry import METHODS

FOUND = {"answer": "the Kelp Fair", "citations": [{"source": 1, "quote": "the"}]}
FOLLOW_UPS = ("Who built the Pellowrig Light?", "When is the Kelp Fair held?")
SAID: dict[str, Any] = {
    "reader/read": {**FOUND, "answerable": True},
    "reasoner/reason": {**FOUND, "reason": "it is told"},
    "recaller/recall": {"known": True, "answer": "the Kelp Fair"},
    "calculator/express": {"expression": "1698 + 4"},
    "querier/entities": {"entities": [{"name": "Kelp Fair", "kind": "other"}]},
    "querier/calls": {"calls": []},
    "resolver/reason_and_doubt": {**FOUND, "reason": "it is told"},
    "answerer/from_memory": {"known": True, "answer": "the Kelp Fair"},
    "answerer/unaided": {"known": True, "answer": "the Kelp Fair"},
    "answerer/answer": {"known": True, "answer": "the Kelp Fair"},
    "verifier/verify": Sure("Perhaps.", 1.25),
}
"""Replies of roles whose requests do not depend on earlier steps."""


def by_role(asked: Asked) -> Any:
    """The reader's and the resolver's first replies are broken off; a planner has two follow-up questions."""
    if asked.prompt in ("reader/read", "resolver/reason_and_doubt") and not asked.repair:
        return BROKEN
    if asked.prompt == "planner/follow_up":
        left = [each for each in FOLLOW_UPS if each not in asked.text]
        return {"follow_up": "Yes", "question": left[0]} if left else {"follow_up": "No", "answer": "the Kelp Fair"}
    return SAID.get(asked.prompt, {"answer": "the Kelp Fair"})  # a wrong reply may lead anywhere


def _alone(asked: Asked) -> Any:
    """A question that is none of a conversation."""
    return "question" if asked.prompt == "router/route" else talked(asked)


@dataclass
class Instant(Scripted):
    """The scripted model without its pauses."""

    async def say(self, method: str, path: str, body: bytes) -> Said:
        if path != CHAT_PATH:
            return Said(200, json.dumps(KNOWN.get(path, {})).encode())
        asked = json.loads(body)
        # The classifier's instructions contain examples, so they cannot be distinguished from a probe.
        label = asked["messages"][-1]["content"].rpartition("\n")[2]
        sorted_as = {"Domain:": "open", "Static or dynamic:": "static"}.get(label)
        return completion(sorted_as) if sorted_as else self.reply(asked)


OTHERS = [
    Trial(method=name, question=QUESTION, script=by_role, widest=10, prompts=frozenset())
    for name in METHODS
    if name not in TRIALS
]

EVERY = [
    *(replace(trial, before="") for trial in TRIALS.values() if trial is not CHAT),
    replace(CHAT, question=QUESTION, script=_alone, values={"method": "par-rag"}),
    *OTHERS,
]
"""One of each method, and the chat."""
