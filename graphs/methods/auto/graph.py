"""auto: start with a cheap method, check its answer, and continue with a stronger one if the answer is rejected.

    plan -> act -> verify -> (plan -> act -> verify)* -> answer

Each sub-run is an ordinary run of another method in a thread of its own (`graphs/runs/subruns.py`). Its findings are
passed to the next one; a rejected answer is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from langgraph.graph import END, START, StateGraph
from pydantic import AfterValidator, BeforeValidator, Field

from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles import planning
from sleuth.graphs.core import (
    Call,
    Context,
    Keyed,
    Method,
    MethodSettings,
    Note,
    Question,
    RunState,
    RunUpdate,
    Subrun,
    ask_or,
    new_subrun,
    parse_json,
    prefix_nodes,
    public_subrun,
    run_subrun,
    summarize_update,
    with_result,
)
from sleuth.graphs.core.node import node
from sleuth.graphs.evidence import as_steps
from sleuth.graphs.methods.auto.escalation import (
    best_verdict,
    final_answers,
    has_independent_parts,
    inherited_notes,
    rejection_reason,
    support_probability,
)
from sleuth.graphs.methods.par_rag import Step, number_steps

METHODS = ("plain-rag", "par-rag", "crp-rag", "retro-rag", "ras", "hybrid-rag")
"""The methods that `auto` can run."""


def _order(text: str) -> str:
    turns = [[name.strip() for name in turn.split("/")] for turn in text.split(",")]
    names = [name for turn in turns for name in turn]
    for name in names:
        if name not in METHODS:
            raise ValueError(f"{name!r} is none of {', '.join(METHODS)}")
    if len(names) > len(set(names)) or any(len(turn) > 2 for turn in turns):
        raise ValueError("each method may be named once, and two at most may be an alternative")
    return ",".join("/".join(turn) for turn in turns)


class Settings(MethodSettings):
    """Settings of `--set`."""

    order: Annotated[str, AfterValidator(_order)] = Field(
        default="plain-rag,par-rag/crp-rag",
        description="methods in turn; a/b: b where the parts of the question need nothing of each other, else a",
    )
    min_citations: int = Field(default=1, ge=0, le=20, description="citations that an answer needs to be accepted")
    min_confidence: float = Field(
        default=0.5, ge=0, lt=1, description="an answer is accepted above this P(yes, it holds); 0: not asked"
    )
    hop_settings: Annotated[dict[str, dict[str, Any]], BeforeValidator(parse_json)] = Field(
        default={}, description='settings of the methods, as JSON: {"par-rag": {"coarse_k": 5}}'
    )

    def nested(self) -> dict[str, dict[str, Any]]:
        """Return `hop_settings`."""
        return self.hop_settings


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of `auto`. Sub-runs are keyed by their number as text; calls include theirs, as `method/node`."""

    order: list[str] = field(default_factory=list)
    """The methods in turn; of two separated by a slash the question decides."""
    parts: Annotated[dict[str, Step], Keyed] = field(default_factory=dict)
    """The question's parts, if the choice between two methods depends on them."""
    hops: Annotated[dict[str, Subrun], Keyed] = field(default_factory=dict)
    """The sub-runs so far, with their results."""


class Update(RunUpdate, total=False):
    """Fields that a node may change; None removes a key."""

    order: list[str]
    parts: dict[str, Step]
    hops: dict[str, Subrun]


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """Choose the next method; of two, by a plan that shows if the question's parts depend on each other."""
    settings = call.settings
    order = state.order or settings.order.split(",")
    choices = order[len(state.hops)].split("/")
    if not call.affords(len(choices)):  # one call to choose, if there is a choice, and at least one of the sub-run
        return {"order": order, "halted": True}
    why = [_why(state)]
    parts: dict[str, Step] = {}
    if len(choices) > 1:
        parts = await _parts(state, call.model)
        why.append(f"its parts {'need nothing of' if has_independent_parts(parts) else 'build on'} each other")
    method = choices[-1] if has_independent_parts(parts) else choices[0]
    update: Update = {"order": order, "parts": parts}
    return {**update, "hops": {str(len(state.hops) + 1): new_subrun(method, "; ".join(why))}}


@node
async def act(state: State, call: Call[Settings]) -> Update:
    """Let the method answer the question in its own thread, from the known notes and with the rest of the budget."""
    number, hop = _latest(state)
    given = inherited_notes(state.notes, state.hops.values())
    values = call.settings.hop_settings.get(hop["method"], {})
    end = await run_subrun(state, call.runtime, method=hop["method"], number=int(number), notes=given, values=values)
    handed = [(note["question"], note["finding"]) for note in given.values()]
    new = {
        f"{hop['method']} {key}": note
        for key, note in end.notes.items()
        if (note["question"], note["finding"]) not in handed
    }
    warnings = [f"{hop['method']}: {warning}" for warning in end.warnings]
    calls = prefix_nodes(hop["method"], end)
    return {"hops": {number: with_result(hop, end, list(new))}, "notes": new, "calls": calls, "warnings": warnings}  # type: ignore[typeddict-item]


@node
async def verify(state: State, call: Call[Settings]) -> Update:
    """Accept or reject the answer: it must be an answer with citations, and a reader of these must confirm it.

    The last method's answer is always accepted: no other method could follow.
    """
    number, hop = _latest(state)
    if not _more(state) or hop["status"] == "out_of_budget":
        return {}
    settings = call.settings
    doubt, confidence = rejection_reason(hop, settings.min_citations), None
    if not doubt and settings.min_confidence:
        call.require()
        confidence = await support_probability(call.model, state.question, hop)
        if confidence <= settings.min_confidence:
            doubt = f"P(it holds) is {confidence:.2f}, not above {settings.min_confidence:g}"
    if not doubt:
        checked = Subrun(**{**hop, "confidence": confidence})
        return {"hops": {number: checked}}
    taken_back: dict[str, Note | None] = dict.fromkeys(final_answers(state.question, state.notes, hop["notes"]))
    kept = [key for key in hop["notes"] if key not in taken_back]
    checked = Subrun(**{**hop, "confidence": confidence, "doubt": doubt, "notes": kept})
    return {"hops": {number: checked}, "notes": taken_back}


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """Return the last method's answer or refusal, and warn of the rejected answers before it."""
    doubted = [hop for hop in state.hops.values() if hop["doubt"] and hop["status"] == "answered"]
    told = [f"{hop['method']} had answered {hop['text']!r}, not accepted: {hop['doubt']}." for hop in doubted]
    return {"verdict": best_verdict(list(state.hops.values()), state.notes, cut_short=state.halted), "warnings": told}


# Routers. A run whose budget has no room for a node's calls is halted there, and ends with what it has.


def begin_hop(state: State) -> Literal["act", "answer"]:
    """Route to the chosen method."""
    return "answer" if state.halted else "act"


def escalate(state: State) -> Literal["plan", "answer"]:
    """Route to the next method if the answer was rejected."""
    return "plan" if _more(state) and _latest(state)[1]["doubt"] and not state.halted else "answer"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = StateGraph(State, context_schema=Context, input_schema=Question)
    graph.add_node(plan)
    graph.add_node(act)
    graph.add_node(verify)
    graph.add_node(answer)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", begin_hop)
    graph.add_edge("act", "verify")
    graph.add_conditional_edges("verify", escalate)
    graph.add_edge("answer", END)
    return graph


# What the nodes above are made of


def _latest(state: State) -> tuple[str, Subrun]:
    return list(state.hops.items())[-1]


def _more(state: State) -> bool:
    """Return whether another method is left."""
    return len(state.hops) < len(state.order)


def _why(state: State) -> str:
    if not state.hops:
        return "first in the order"
    _, before = _latest(state)
    return f"{before['method']} was not accepted: {before['doubt']}"


async def _parts(state: State, model: ModelCaller) -> dict[str, Step]:
    known = as_steps(inherited_notes(state.notes, state.hops.values()).values())
    given = planning.PlanInput(question=state.question, known=known)
    single = planning.Plan(steps=[planning.PlanStep.model_construct(question=state.question)])
    loss = "The parts of the question are taken to build on each other."
    return number_steps((await ask_or(model, planning.PLAN, given, single, loss)).steps)


def summarize(update: Mapping[str, Any]) -> list[str]:
    """Return lines that describe the update of a node."""
    parts = [f"part {key}: {part['question']}" for key, part in (update.get("parts") or {}).items()]
    hops = [_summarize_subrun(hop) for hop in (update.get("hops") or {}).values()]
    return [*parts, *hops, *summarize_update(update)]


def _summarize_subrun(hop: Subrun) -> str:
    if hop["doubt"]:
        return f"{hop['method']} is not accepted: {hop['doubt']}"
    if hop["confidence"] is not None:
        return f"{hop['method']} is accepted: P(it holds) is {hop['confidence']:.2f}"
    ended = f"{hop['method']}: {hop['status'].replace('_', ' ')}, in thread {hop['thread']}"
    return ended if hop["thread"] else f"{hop['method']}: {hop['why']}"


def read_subruns(state: Mapping[str, Any]) -> list[Subrun] | None:
    """Return the runs of other methods that a state contains, in order."""
    return [public_subrun(hop) for hop in state["hops"].values()] if "hops" in state else None


METHOD = Method(
    name="auto",
    line="start with a cheap method, check its answer, and continue with a stronger one if the answer is rejected",
    paper="none: our way of choosing among the methods above",
    when="you do not know how hard the question is, and an easy one should stay cheap",
    calls="2 to 14; 4 on two hops",
    graph=graph,
    state=State,
    settings=Settings,
    summarize_update=summarize,
    read_subruns=read_subruns,
)
