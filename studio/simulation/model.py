"""A model for evaluation without a server: it plays every role from a question's gold, with configurable errors.

Its replies are labelled: `Reply.model` is "simulated". It never waits; seconds are virtual.
"""

from functools import partial
from operator import attrgetter

from sleuth.agents.model import Message, Reply, Request, Usage
from sleuth.agents.roles import hybrid, reading, reasoning
from sleuth.agents.roles.conversation import SmallTalk
from sleuth.studio.simulation import answering, chatting, condensing, judging, planning
from sleuth.studio.simulation.answering import answer_as, answer_or_admit, recall_as
from sleuth.studio.simulation.gold import Gold
from sleuth.studio.simulation.parameters import Simulation
from sleuth.studio.simulation.reply import (
    Handler,
    UsageMeter,
    count_prompt_tokens,
    count_tokens,
    structured_reply,
)
from sleuth.studio.simulation.request_view import RequestView

NAME = "simulated"

_WHOLE = attrgetter("gold.question")

HANDLERS: dict[str, Handler] = {
    "planner/plan": planning.plan,
    "planner/plan_in_order": planning.plan_in_order,
    "planner/begin": planning.begin,
    "planner/next": planning.next_query,
    "planner/next_with_finding": planning.next_with_finding,
    "planner/follow_up": planning.follow_up,
    "planner/sub_query": planning.sub_query,
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
    "calculator/express": lambda _: structured_reply(hybrid.Expression()),  # the gold contains no arithmetic
    "reader/read": answer_as(reading.Reading),
    "drafter/draft": answer_as(reading.Draft),
    "drafter/draft_sentence": answer_as(reading.SentenceDraft),
    "drafter/conclude": answer_as(reading.Conclusion),
    "answerer/answer": answer_as(reading.Final, _WHOLE),
    "answerer/answer_with_sources": answer_as(reading.Final, _WHOLE),
    "answerer/from_facts": answering.from_facts,
    "answerer/unaided": answering.unaided,
    "answerer/long_from_facts": answering.long_from_facts,
    "answerer/long_from_facts_with_examples": answering.long_from_facts,
    "answerer/long_unaided": answering.unaided,
    "answerer/from_memory": answering.from_memory,
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
    "verifier/verify": answering.verify,
    "recaller/recall": recall_as(hybrid.Recollection),
    "resolver/plain": answer_as(hybrid.Resolved, _WHOLE, otherwise=lambda view: view.decoy(view.gold.answer)),
    "resolver/careful": answer_or_admit(hybrid.Resolved),
    "resolver/reason": answer_or_admit(hybrid.Reasoned),
    "resolver/reason_and_doubt": answering.doubt,
    "summariser/summarise": answer_or_admit(hybrid.Summary),
    "reviewer/review": partial(judging.review, looks_back=True),
    "reviewer/review_step": partial(judging.review, looks_back=False),
    "evaluator/declarative": judging.declarative,
    "evaluator/consistency": judging.consistency,
    "evaluator/evidence": judging.evidence,
    "evaluator/relevance": judging.relevance,
    "evaluator/attribution": judging.attribution,
    "evaluator/support": judging.support,
    "classifier/domain": judging.domain,
    "classifier/dynamic": judging.dynamic,
    "judge/judge": judging.judge,
    "aggregator/aggregate": condensing.aggregate,
    "aggregator/aggregate_in_detail": condensing.aggregate,
    "extractor/extract": condensing.extract,
    "detective/infer": condensing.infer,
    "detective/infer_all": condensing.infer,
    "router/route": chatting.route,
    "rewriter/rewrite": chatting.rewrite,
    "host/reply": lambda _: structured_reply(SmallTalk()),
    "host/ask_back": chatting.ask_back,
}
"""The handler of each prompt. A new role also needs its errors in `parameters.ROLES`."""


class SimulatedModel:
    """The model of one question's run; make a new one for each run, since it caches the run's prompts.

    A reply depends on the simulation's seed, the question's id, and the request's content and place.
    """

    context_window = 8192
    """Tokens that prompt and reply may have together."""

    def __init__(self, gold: Gold, simulation: Simulation) -> None:
        self.gold = gold
        self.simulation = simulation
        self._meter = UsageMeter(simulation)

    async def call(self, request: Request) -> Reply:
        """Return the reply of the request's role."""
        view = RequestView(gold=self.gold, simulation=self.simulation, request=request)
        reply = HANDLERS[request.prompt](view)
        prompt, written = count_prompt_tokens(request.messages), count_tokens(reply.text)
        cached = self._meter.cached(request.messages)
        return Reply(
            text=reply.text,
            finish="stop",
            model=NAME,
            usage=Usage(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=written),
            seconds=self._meter.seconds(prompt - cached, written),
            logprobs=reply.logprobs(request.sampling),
            warnings=[],
        )

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the tokens of a prompt as the replies' usage counts them."""
        return count_prompt_tokens(messages)
