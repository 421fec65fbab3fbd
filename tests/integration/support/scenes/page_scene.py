"""Documents, a question about them, and a model that knows the answer: what the page is shown with."""

import asyncio
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from scripted_model import reply

from sleuth.agents.model import Message, Reply, Request
from sleuth.studio.simulation.gold import Gold, gold_of
from sleuth.studio.simulation.model import SimulatedModel
from sleuth.studio.simulation.parameters import Simulation
from sleuth.tools.errors import SleuthError

EXAMPLES = Path(__file__).parents[4] / "examples"
DOCUMENTS = [EXAMPLES / "corpus" / f"{name}.md" for name in ("pellowrig-light", "bastian-oake", "sennick-harbour")]
QUESTION = "Which fair is held in the birthplace of the builder of the Pellowrig Light?"
QUOTE = "Every year on the first weekend of March the town holds the Kelp Fair"

FOLLOW_UP = "And what fair do they have where its builder was born?"
TALK: dict[str, Any] = {
    "rewriter/rewrite": {"question": QUESTION},
    "router/route": "follow-up",
    "planner/outline": {"title": "The fair", "sections": [{"heading": "The light", "question": QUESTION}]},
    "answerer/section": {"sentences": [{"text": f"{QUOTE}.", "sources": [1, 2, 3]}]},
}
"""Messages of a conversation, and the outline and section of a report."""

MISTAKEN: dict[str, Any] = {
    "steps": [
        {"question": "Who built the Pellowrig Light?", "needs": []},
        {"question": "Which medal was named after #1?", "needs": [1]},
    ]
}
"""A plan that leaves the birthplace out."""


def _gold() -> Gold:
    rows = map(json.loads, (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines())
    texts = {file.name: file.read_text(encoding="utf-8") for file in DOCUMENTS}
    passages = {name: (text.splitlines()[0].lstrip("# "), text) for name, text in texts.items()}
    return gold_of(next(row for row in rows if row["question"] == QUESTION), passages)


class Teller:
    """Answers from the gold, unless it is `mistaken` or has a `fault`; calls with a prompt whose gate is shut wait.

    A listener receives a reply before the gate.
    """

    context_window = 8192

    def __init__(self) -> None:
        self.mistaken = False
        self.fault: SleuthError | None = None
        self.gates: defaultdict[str, asyncio.Event] = defaultdict(_opened)
        self._model = SimulatedModel(_gold(), Simulation(rates={}))

    def name_of(self, role: str) -> str:
        return "simulated"

    async def call(self, request: Request) -> Reply:
        said = await self._reply(request)
        if request.listener:
            request.listener.delta(said["text"])
        await self.gates[request.prompt].wait()
        if self.fault:
            raise self.fault
        return said

    async def _reply(self, request: Request) -> Reply:
        if said := TALK.get(request.prompt):
            return reply(said if isinstance(said, str) else json.dumps(said), prompt_tokens=100)
        if self.mistaken and request.prompt == "planner/plan":
            return reply(json.dumps(MISTAKEN), prompt_tokens=100)
        return await self._model.call(request)

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        return await self._model.count_tokens(messages, role=role)


def _opened() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate
