"""Questions that drive methods through all their nodes, with the replies of a model.

Each stores in another way. PAR-RAG: parallel steps, one of which is opened again. CRP-RAG: equal prompts that differ in
their seed, and four nodes side by side. RAS: triples that an earlier run has stored, and new ones. auto: a run in a
thread of its own. chat: an interrupt, then PAR-RAG likewise. Each has a reply that must be repaired.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import four_hops
from scripted_backend import Asked, Script, Sure

QUESTION = four_hops.QUESTION
BROKEN = '{"answer": "broken'


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A question for a method with its settings, and the expected events without interruption.

    `prompts`: those that are asked, separated by spaces. `widest`: the most calls side by side. `before`: asked by
    another run first, whose triples are kept. `scripted`: the prompts that the script answers where all others go to a
    real model.
    """

    method: str
    script: Script
    widest: int
    prompts: str
    question: str = QUESTION
    values: dict[str, Any] = field(default_factory=dict)
    before: str = ""
    scripted: frozenset[str] = frozenset()


PAR = Trial(
    method="par-rag",
    script=four_hops.four_hops,
    widest=2,
    prompts="planner/plan drafter/draft drafter/conclude reviewer/review refiner/refine answerer/answer",
)


# CRP-RAG

BUILDER, SAME, PLACE = "Who built the Light?", "Who has built the Light?", "Where does the keeper live?"
FAIR, COLOUR = "Which fair is held there?", "What colour has its lamp?"
DRAWN = {True: (BUILDER, SAME, PLACE), False: (FAIR, COLOUR, FAIR)}
UNKNOWN = {QUESTION, COLOUR}


def several_ways(asked: Asked) -> Any:
    """Two paths to one last step, and another step without evidence."""
    match asked.prompt:
        case "expander/expand":
            first = "(nothing yet)" in asked.text.split("Steps so far:")[-1]
            return {"step": DRAWN[first][asked.turn % 3], "final": not first}
        case "fuser/fuse":
            return {"step": BUILDER}
        case "aggregator/aggregate":
            step = asked.after("Step: ")
            if step == PLACE and not asked.repair:
                return BROKEN
            return {"knowledge": f"So much is known: {step}", "citations": [{"source": 1, "quote": "the"}]}
        case "verifier/verify":
            return Sure("Perhaps.", 40.0) if asked.after("Question: ") in UNKNOWN else Sure("It is known.", 1.25)
        case "integrator/step":
            return {"answer": f"an answer to {asked.after('This step: ')}"}
        case "integrator/last_step":
            return {"answer": "the fair of the builder" if BUILDER in asked.text else "the fair of the keeper"}
    return {"answer": "two fairs, one for each way"}


CRP = Trial(
    method="crp-rag",
    script=several_ways,
    values={"samples": 3, "top_k": 3},
    widest=6,
    prompts="expander/expand fuser/fuse aggregator/aggregate verifier/verify"
    " integrator/step integrator/last_step integrator/integrate",
)


# RAS

SUB_QUERIES = ("Who built the Pellowrig Light?", "When is the Kelp Fair held?")


def a_graph(asked: Asked) -> Any:
    """Three sub-queries, the question itself the first of them; each finds facts of its own."""
    match asked.prompt:
        case "planner/begin":
            return "[SUBQ]"
        case "extractor/extract":
            title = asked.titles()[0]
            if "Kelp" in title and not asked.repair:
                return BROKEN
            return {"triples": [{"subject": title, "predicate": "is told of in", "object": title.split()[-1]}]}
        case "planner/next_with_finding":
            done = asked.text.count("[SUBQ] ")
            found = {"finding": f"finding {done}", "facts": [done]}
            if done > len(SUB_QUERIES):
                return {**found, "plan": "[SUFFICIENT]"}
            return {**found, "plan": "[SUBQ]", "query": SUB_QUERIES[done - 1]}
    return {"facts": [1, 2], "answer": "the Kelp Fair", "known": True}


RAS = Trial(
    method="ras",
    script=a_graph,
    values={"top_k": 3},
    widest=3,
    before=SUB_QUERIES[0],
    prompts="planner/begin planner/next_with_finding extractor/extract answerer/from_facts",
)

# auto


def doubted(asked: Asked) -> Any:
    """Plain RAG's answer does not pass its check, and the question's parts build on each other."""
    match asked.prompt:
        case "reader/read":
            return {"answerable": True, "answer": "the Kelp Fair", "citations": [{"source": 1, "quote": "the"}]}
        case "evaluator/support":
            return 0.2
    return four_hops.four_hops(asked)


AUTO = Trial(
    method="auto",
    script=doubted,
    widest=2,
    prompts=f"{PAR.prompts} reader/read evaluator/support",
    values={"order": "plain-rag,par-rag/crp-rag"},
)

# The chat


def talked(asked: Asked) -> Any:
    """A follow-up, which becomes the question; the plan is shown before it is carried out."""
    match asked.prompt:
        case "router/route":
            return "follow-up"
        case "rewriter/rewrite":
            return {"question": QUESTION}
    return four_hops.four_hops(asked)


CHAT = Trial(
    method="chat",
    question="And the fair of its builder?",
    script=talked,
    values={"method": "par-rag", "approve_plan": True},
    widest=2,
    prompts=f"{PAR.prompts} router/route rewriter/rewrite",
)

TRIALS = {trial.method: trial for trial in (PAR, CRP, RAS, AUTO, CHAT)}


# For the small real model. Left alone it plans one step for nearly every question.

REAL_PLAN = [
    {"question": "Who built the Pellowrig Light?", "needs": []},
    {"question": "Where was the builder of the Pellowrig Light born?", "needs": [1]},
    {"question": "Which fair is held in that place?", "needs": [2]},
]

REAL_PAR = replace(
    PAR,
    script=lambda _: {"steps": REAL_PLAN},
    scripted=frozenset({"planner/plan"}),
    values={"coarse_k": 2, "fine_k": 2, "skip_supported": False},
    prompts="drafter/draft reviewer/review refiner/refine",
)
