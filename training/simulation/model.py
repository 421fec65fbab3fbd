"""A model for evaluation without a server: it plays a method's roles from a question's gold, with configurable errors.

Its replies are labeled: `Reply.model` is "simulated". It never waits; seconds are virtual.
"""

from collections.abc import Callable
from functools import partial
from operator import attrgetter

from sleuth.agents.model import Message, Reply, Request, Usage
from sleuth.agents.role import Output
from sleuth.agents.roles import hybrid, reading, reasoning
from sleuth.agents.roles.judging import CHANGING, STATIC
from sleuth.agents.roles.planning import NO_RETRIEVAL, SUBQ
from training.simulation import answering, judging, planning
from training.simulation.answering import answer_as, answer_or_admit, find_answer, recall_as, wrong_answer
from training.simulation.gold import Gold
from training.simulation.judging import SimulatedReply
from training.simulation.parameters import Simulation
from training.simulation.request_view import RequestView

NAME = "simulated"

_WHOLE = attrgetter("gold.question")

HANDLERS: dict[str, Callable[[RequestView], SimulatedReply | Output | str]] = {
    "planner/plan": planning.plan,
    "planner/plan_in_order": planning.plan_in_order,
    "planner/begin": lambda view: NO_RETRIEVAL if view.knows_unaided() else SUBQ,
    "planner/next": planning.next_query,
    "planner/next_with_finding": planning.next_with_finding,
    "planner/follow_up": planning.follow_up,
    "actor/act": planning.act,
    "actor/act_with_tools": planning.act_with_tools,
    "searcher/search_r1": partial(planning.continue_transcript, format="search-r1"),
    "searcher/stepsearch": partial(planning.continue_transcript, format="stepsearch"),
    "searcher/corag": partial(planning.continue_transcript, format="corag"),
    "expander/expand": planning.expand,
    "expander/expand_freely": planning.expand,
    "expander/rewrite": planning.rewrite,
    "fuser/fuse": planning.fuse,
    "refiner/refine": planning.refine,
    "detective/entities": planning.entities,
    "extractor/names": planning.names,
    "detective/requery": planning.requery,
    "querier/entities": planning.name_entities,
    "querier/calls": planning.choose_calls,
    "calculator/express": lambda _: hybrid.Expression(),  # the gold contains no arithmetic
    "reader/read": answer_as(reading.Reading),
    "reader/cite": answer_as(reading.Cited),
    "drafter/draft": answer_as(reading.Draft),
    "drafter/draft_sentence": answer_as(reading.SentenceDraft),
    "drafter/conclude": answer_as(reading.Conclusion),
    "answerer/answer": answer_as(reading.Final, _WHOLE),
    "answerer/answer_with_sources": answer_as(reading.Final, _WHOLE),
    "answerer/from_facts": answering.from_facts,
    "answerer/unaided": recall_as(reading.Unaided, otherwise=wrong_answer),
    "answerer/long_from_facts": answering.long_from_facts,
    "answerer/long_from_facts_with_examples": answering.long_from_facts,
    "answerer/long_unaided": recall_as(reading.Unaided, otherwise=wrong_answer),
    "answerer/from_memory": recall_as(
        reading.Unaided, found=lambda view: find_answer(view, view.question).answer, otherwise=wrong_answer
    ),
    "reasoner/think": planning.think,
    "reasoner/reason": answering.reason,
    "reasoner/reason_with_examples": answering.reason,
    "reasoner/monitor": answer_as(reasoning.Direct),
    "reasoner/recall": recall_as(reasoning.Recalled, reason="I do not know it."),
    "reasoner/guess": recall_as(reasoning.Direct),
    "integrator/step": answer_as(reasoning.Result),
    "integrator/last_step": answer_as(reasoning.Result, lambda view: view.given["question"]),
    "integrator/path": answer_as(reasoning.Result),
    "integrator/integrate": answering.integrate,
    "verifier/verify": judging.verify,
    "recaller/recall": recall_as(hybrid.Recollection),
    "resolver/plain": answer_as(hybrid.Resolved, _WHOLE, otherwise=wrong_answer),
    "resolver/careful": answer_or_admit(hybrid.Resolved),
    "resolver/reason": answer_or_admit(hybrid.Reasoned),
    "resolver/reason_and_doubt": answering.doubt,
    "summariser/summarise": answer_or_admit(hybrid.Summary),
    "reviewer/review": partial(judging.review, looks_back=True),
    "reviewer/review_step": partial(judging.review, looks_back=False),
    **dict.fromkeys(judging.YES_OR_NO, judging.yes_or_no),
    "evaluator/asks_all": lambda _: SimulatedReply(text="No", yes=1e-6),
    "classifier/domain": lambda view: view.gold.domain or "open",
    "classifier/dynamic": lambda view: CHANGING if view.gold.dynamic else STATIC,
    "aggregator/aggregate": answering.aggregate,
    "aggregator/aggregate_in_detail": answering.aggregate,
    "extractor/extract": answering.extract,
    "detective/infer": answering.infer,
    "detective/infer_all": answering.infer,
}
"""Handlers by prompt, which return an object or a text. A new role also needs its errors in `parameters.ROLES`."""


CHARS_PER_TOKEN = 5
"""A word counts as one token per five characters or part of them: about 1.3 tokens per English word."""

_BLOCK = 16
"""Words of a cached block; servers cache prompts in blocks too."""

_TEMPLATE = 4
"""Tokens that a chat template adds to each message."""


class SimulatedModel:
    """The model of one question's run; make a new one for each run, since it caches the run's prompts.

    A reply depends on the simulation's seed, the question's id, and the request's content and place.
    """

    context_window = 8192
    """Tokens that prompt and reply may have together."""
    handlers = HANDLERS
    view = RequestView

    def __init__(self, gold: Gold, simulation: Simulation) -> None:
        self.gold = gold
        self.simulation = simulation
        self._blocks: set[int] = set()

    async def call(self, request: Request) -> Reply:
        """Return the reply of the request's role."""
        view = self.view(gold=self.gold, simulation=self.simulation, request=request)
        reply = self.handlers[request.prompt](view)
        if not isinstance(reply, SimulatedReply):
            reply = SimulatedReply(text=reply if isinstance(reply, str) else reply.model_dump_json())
        prompt, written = await self.count_tokens(request.messages, role=request.role), _count_tokens(reply.text)
        cached = self._count_cached(request.messages)
        return Reply(
            text=reply.text,
            finish="stop",
            model=NAME,
            usage=Usage(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=written),
            seconds=round((prompt - cached) / self.simulation.prefill + written / self.simulation.decode, 4),
            logprobs=reply.logprobs(request.sampling),
            warnings=[],
        )

    def name_of(self, role: str) -> str:
        """Return the name of the simulated model, which plays every role."""
        return NAME

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the tokens of a prompt as the replies' usage counts them."""
        return sum(_count_tokens(message["content"]) + _TEMPLATE for message in messages)

    def _count_cached(self, messages: tuple[Message, ...]) -> int:
        """Return the tokens at the prompt's beginning that are in the cache, and add the prompt to the cache.

        The cached tokens of all calls together do not depend on the order of the calls.
        """
        text = " ".join(message["content"] for message in messages).split()
        mark, cached = 0, 0
        for start in range(0, len(text) - _BLOCK + 1, _BLOCK):
            block = text[start : start + _BLOCK]
            mark = hash((mark, *block))
            if mark in self._blocks:
                cached += _count_tokens(" ".join(block))
            self._blocks.add(mark)
        return cached


def _count_tokens(text: str) -> int:
    """Return the tokens of a text; two texts together have as many as each alone."""
    return sum(-(-len(word) // CHARS_PER_TOKEN) for word in text.split())
