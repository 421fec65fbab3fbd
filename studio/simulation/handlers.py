"""Which function plays which prompt.

A new prompt needs a line here, and a function in the family of its role: it gets the scene (what was asked and shown,
what that tells of the gold, the dice) and returns what the role says. A new role also needs its errors in
parameters.py.
"""

from collections.abc import Callable

from sleuth.studio.simulation import answering, chatting, condensing, judging, planning, resolving
from sleuth.studio.simulation.reply import SimulatedReply
from sleuth.studio.simulation.request_view import RequestView

HANDLERS: dict[str, Callable[[RequestView], SimulatedReply]] = {
    "planner/plan": planning.plan,
    "planner/plan_in_order": planning.plan_in_order,
    "planner/begin": planning.begin,
    "planner/next": planning.next_query,
    "planner/next_with_finding": planning.next_with_finding,
    "planner/follow_up": planning.follow_up_question,
    "actor/act": planning.act,
    "expander/expand": planning.expand,
    "fuser/fuse": planning.fuse,
    "refiner/refine": planning.refine,
    "detective/entities": planning.entities,
    "detective/requery": planning.requery,
    "reader/read": answering.read,
    "drafter/draft": answering.draft,
    "drafter/conclude": answering.conclude,
    "answerer/answer": answering.answer,
    "answerer/from_facts": answering.from_facts,
    "answerer/unaided": answering.unaided,
    "answerer/from_memory": answering.from_memory,
    "reasoner/think": planning.think,
    "reasoner/reason": answering.reason,
    "reasoner/monitor": answering.monitor,
    "reasoner/recall": answering.recall,
    "reasoner/guess": answering.guess,
    "integrator/step": answering.take_step,
    "integrator/last_step": answering.take_last_step,
    "integrator/path": answering.take_path,
    "integrator/integrate": answering.integrate,
    "verifier/verify": answering.verify,
    "recaller/recall": resolving.recall,
    "querier/entities": resolving.entities,
    "querier/calls": resolving.calls,
    "calculator/express": resolving.express,
    "resolver/plain": resolving.plain,
    "resolver/careful": resolving.careful,
    "resolver/reason": resolving.reason,
    "resolver/reason_and_doubt": resolving.doubt,
    "summariser/summarise": resolving.summarise,
    "reviewer/review": judging.review,
    "reviewer/review_step": judging.review_step,
    "evaluator/consistency": judging.consistency,
    "evaluator/evidence": judging.evidence,
    "evaluator/relevance": judging.relevance,
    "evaluator/attribution": judging.attribution,
    "evaluator/support": judging.support,
    "classifier/domain": judging.domain,
    "classifier/dynamic": judging.dynamic,
    "aggregator/aggregate": condensing.aggregate,
    "extractor/extract": condensing.extract,
    "detective/infer": condensing.infer,
    "judge/judge": judging.judge,
    "router/route": chatting.route,
    "rewriter/rewrite": chatting.rewrite,
    "host/reply": chatting.reply,
    "host/ask_back": chatting.ask_back,
}
