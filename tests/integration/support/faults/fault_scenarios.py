"""Questions that drive each method through all its nodes, with the replies of a model.

CRP-RAG: samples, two of them fused, four nodes side by side of which one lacks its knowledge, two paths that contradict
each other. RetroRAG: three rounds, an answer that states nothing, one that the second contradicts, inferences, evidence
that leaves and inferences that leave with it. RAS: three sub-queries, passages read by an earlier run and new ones.
auto: plain RAG, then PAR-RAG in a thread of its own. chat: a follow-up whose plan is approved, then PAR-RAG likewise.
IRCoT: five sentences. agent: five searches, one of them again. Each has a reply that must be repaired.
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

    `widest`: the most calls side by side. `before`: asked by another run first, whose triples are kept. `scripted`: the
    prompts that the script answers where all others go to a real model.
    """

    method: str
    script: Script
    widest: int
    prompts: frozenset[str]
    question: str = QUESTION
    values: dict[str, Any] = field(default_factory=dict)
    before: str = ""
    scripted: frozenset[str] = frozenset()


PAR = Trial(
    method="par-rag",
    script=four_hops.four_hops,
    widest=2,
    prompts=frozenset(
        {
            *("planner/plan", "drafter/draft", "drafter/conclude"),
            *("reviewer/review", "refiner/refine", "answerer/answer"),
        }
    ),
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
    prompts=frozenset(
        {
            *("expander/expand", "fuser/fuse", "aggregator/aggregate", "verifier/verify"),
            *("integrator/step", "integrator/last_step", "integrator/integrate"),
        }
    ),
)


# RetroRAG

SEARCHES = ("When is the Kelp Fair held?", "Which yard launched the Lady Morrable?")


def taken_back(asked: Asked) -> Any:
    """The last search result scores highest, so that earlier results are removed."""
    title = " ".join(asked.titles())
    stage = 2 if "Lady Morrable" in title else 1 if "Kelp Fair" in title else 0
    if asked.prompt.startswith("evaluator/"):
        return _judged(asked)
    match asked.prompt:
        case "detective/entities":
            return {"entities": ["Pellowrig Light", "the builder"]} if asked.repair else BROKEN
        case "detective/infer":
            return {"inferences": [_inference(at, title) for at, title in enumerate(asked.titles(), start=1)]}
        case "detective/requery":
            return {"query": SEARCHES[min(stage, 1)]}
    second = asked.prompt == "reasoner/monitor"
    answer = ("unknown", "another fair" if second else "the Kelp Fair", "the fair at Sennick")[stage]
    return {"answer": answer} if second else {"reason": f"stage {stage}", "citations": [], "answer": answer}


def _judged(asked: Asked) -> float:
    match asked.prompt:
        case "evaluator/evidence":
            return _near(asked.after("Question: "), asked.text)
        case "evaluator/relevance":
            return 0.8
        case "evaluator/attribution":
            return 0.9 if asked.after("Statement: ") in " ".join(asked.text.split("Statement: ")[0].split()) else 0.1
        case "evaluator/declarative":
            return 0.1 if asked.after("Reply: ") == "unknown" else 0.9
    return 0.9 if asked.after("First answer: ") == asked.after("Second answer: ") else 0.3


def _inference(source: int, title: str) -> dict[str, Any]:
    return {"question": f"What is {title}?", "claim": title, "citations": [{"source": source, "quote": title}]}


def _near(query: str, text: str) -> float:
    """The later a query names a word of the title, the more its source helps."""
    title = {word.lower() for word in text.splitlines()[1].split()}
    words = [word.strip("?").lower() for word in query.split()]
    return 0.1 + 0.8 * max((at for at, word in enumerate(words, start=1) if word in title), default=0) / len(words)


RETRO = Trial(
    method="retro-rag",
    script=taken_back,
    values={"max_sources": 2, "max_inferences": 2, "top_k": 3, "assess": True},
    widest=6,
    prompts=frozenset(
        {
            *("evaluator/evidence", "evaluator/relevance", "evaluator/attribution"),
            *("evaluator/consistency", "evaluator/declarative"),
            *("detective/entities", "detective/infer", "detective/requery", "reasoner/reason", "reasoner/monitor"),
        }
    ),
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
    prompts=frozenset(
        {"planner/begin", "planner/next_with_finding", "extractor/extract", "answerer/from_facts"},
    ),
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
    prompts=PAR.prompts | {"reader/read", "evaluator/support"},
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
    prompts=PAR.prompts | {"router/route", "rewriter/rewrite"},
)

# Baselines

SENTENCES = (
    "The Pellowrig Light was built by Edric Gannow.",
    "Edric Gannow was born in Brindlecote.",
    "In Brindlecote a fair is held.",
    "The Kelp Fair is held elsewhere.",
    "So the answer is: the fair at Brindlecote.",
)


def a_chain(asked: Asked) -> Any:
    """Sentence after sentence; the reader's first answer is broken off."""
    if asked.prompt == "reasoner/think":
        return SENTENCES[sum(sentence in asked.text for sentence in SENTENCES)]
    return {"reason": "", "citations": [], "answer": "the fair at Brindlecote"} if asked.repair else BROKEN


IRCOT = Trial(method="ircot", script=a_chain, widest=1, prompts=frozenset({"reasoner/think", "reasoner/reason"}))

CALLED = ("Pellowrig Light", "Edric Gannow", "fair in Brindlecote", "Kelp Fair", "Lady Morrable")


def calls_the_tool(asked: Asked) -> Any:
    """Five searches; the sixth would be one of them again, so the question is answered from what was found."""
    if asked.prompt == "reasoner/reason":
        return {"reason": "", "citations": [], "answer": "the fair at Brindlecote"}
    done = asked.text.count("\nSearch ")
    if done == 1 and not asked.repair:
        return BROKEN
    return {"action": "search", "query": CALLED[done % len(CALLED)]}


AGENT = Trial(
    method="agent",
    script=calls_the_tool,
    values={"top_k": 2},
    widest=1,
    prompts=frozenset({"actor/act", "reasoner/reason"}),
)

TRIALS = {trial.method: trial for trial in (PAR, CRP, RETRO, RAS, AUTO, CHAT, IRCOT, AGENT)}


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
    prompts=frozenset({"drafter/draft", "reviewer/review", "refiner/refine"}),
)
