"""auto: begin with a cheap method, check its answer, and go on with a stronger one where it does not hold.

    plan -> act -> verify -> (plan -> act -> verify)* -> answer

Every hop is an ordinary run of another method in a thread of its own (`graphs/runs/subruns.py`). What it found is
handed to the next one; an answer that did not pass its check is not.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from langgraph.graph import END, START, StateGraph
from pydantic import AfterValidator, BeforeValidator, Field

from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles import planning
from sleuth.graphs.core import (
    Call,
    Context,
    Hop,
    Keyed,
    Method,
    MethodSettings,
    Note,
    Question,
    RunState,
    RunUpdate,
    ask_or,
    counted,
    delegate,
    ended,
    from_json,
)
from sleuth.graphs.core.node import node
from sleuth.graphs.evidence import known_steps
from sleuth.graphs.methods.auto.escalation import (
    answers_to,
    concluded,
    doubt_about,
    handed_over,
    independent,
    new_hop,
    support,
)
from sleuth.graphs.methods.par_rag import Step, numbered

METHODS = ("plain-rag", "par-rag", "crp-rag", "retro-rag", "ras", "hybrid-rag")
"""What can be a hop."""


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
    """What can be set with `--set`."""

    order: Annotated[str, AfterValidator(_order)] = Field(
        default="plain-rag,par-rag/crp-rag",
        description="methods in turn; a/b: b where the parts of the question need nothing of each other, else a",
    )
    min_citations: int = Field(default=1, ge=0, le=20, description="citations that an answer needs to be accepted")
    min_confidence: float = Field(
        default=0.5, ge=0, lt=1, description="an answer is accepted above this P(yes, it holds); 0: not asked"
    )
    hop_settings: Annotated[dict[str, dict[str, Any]], BeforeValidator(from_json)] = Field(
        default={}, description='settings of the methods, as JSON: {"par-rag": {"coarse_k": 5}}'
    )

    def nested(self) -> dict[str, dict[str, Any]]:
        """Return `hop_settings`."""
        return self.hop_settings


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """Hops are keyed by their number as text; calls are those of all hops too, their nodes as `method/node`."""

    order: list[str] = field(default_factory=list)
    """The methods in turn, two with a stroke between them where the question decides."""
    parts: Annotated[dict[str, Step], Keyed] = field(default_factory=dict)
    """The question's parts, once it had to be known whether they need each other."""
    hops: Annotated[dict[str, Hop], Keyed] = field(default_factory=dict)
    """The methods that have had their turn, and what became of it."""


class Update(RunUpdate, total=False):
    """What a node may change; None removes a key."""

    order: list[str]
    parts: dict[str, Step]
    hops: dict[str, Hop]


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """Which method is next; where two are named, a plan of the question tells whether its parts need each other."""
    settings = call.settings
    order = state.order or settings.order.split(",")
    choices = order[len(state.hops)].split("/")
    if not call.affords(len(choices)):  # one to choose where there is a choice, one of the hop's at least
        return {"order": order, "halted": True}
    why = [_why(state)]
    parts: dict[str, Step] = {}
    if len(choices) > 1:
        parts = await _parts(state, call.model)
        why.append(f"its parts {'need nothing of' if independent(parts) else 'build on'} each other")
    method = choices[-1] if independent(parts) else choices[0]
    update: Update = {"order": order, "parts": parts}
    return {**update, "hops": {str(len(state.hops) + 1): new_hop(method, "; ".join(why))}}


@node
async def act(state: State, call: Call[Settings]) -> Update:
    """The method answers the question in its own thread, from what is known and with what is left of the budget."""
    number, hop = _latest(state)
    given = handed_over(state.notes, state.hops.values())
    values = call.settings.hop_settings.get(hop["method"], {})
    end = await delegate(state, call.runtime, method=hop["method"], number=int(number), notes=given, values=values)
    handed = [(note["question"], note["finding"]) for note in given.values()]
    new = {
        f"{hop['method']} {key}": note
        for key, note in end.notes.items()
        if (note["question"], note["finding"]) not in handed
    }
    warnings = [f"{hop['method']}: {warning}" for warning in end.warnings]
    calls = counted(hop["method"], end)
    return {"hops": {number: ended(hop, end, list(new))}, "notes": new, "calls": calls, "warnings": warnings}  # type: ignore[typeddict-item]


@node
async def verify(state: State, call: Call[Settings]) -> Update:
    """Whether the answer is accepted: it is one, it cites, and a reader of what it cites says that it holds.

    The last method's answer stands as it is: nothing could follow from a doubt.
    """
    number, hop = _latest(state)
    if not _more(state) or hop["status"] == "out_of_budget":
        return {}
    settings = call.settings
    doubt, confidence = doubt_about(hop, settings.min_citations), None
    if not doubt and settings.min_confidence:
        call.require()
        confidence = await support(call.model, state.question, hop)
        if confidence <= settings.min_confidence:
            doubt = f"P(it holds) is {confidence:.2f}, not above {settings.min_confidence:g}"
    if not doubt:
        checked = Hop(**{**hop, "confidence": confidence})
        return {"hops": {number: checked}}
    taken_back: dict[str, Note | None] = dict.fromkeys(answers_to(state.question, state.notes, hop["notes"]))
    kept = [key for key in hop["notes"] if key not in taken_back]
    checked = Hop(**{**hop, "confidence": confidence, "doubt": doubt, "notes": kept})
    return {"hops": {number: checked}, "notes": taken_back}


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """The last method's answer or refusal; what was not accepted before it is told beside it."""
    doubted = [hop for hop in state.hops.values() if hop["doubt"] and hop["status"] == "answered"]
    told = [f"{hop['method']} had answered {hop['text']!r}, not accepted: {hop['doubt']}." for hop in doubted]
    return {"verdict": concluded(list(state.hops.values()), state.notes, cut_short=state.halted), "warnings": told}


# Routers. A run whose budget has no room for a node's calls is halted there, and ends with what it has.


def begin_hop(state: State) -> Literal["act", "answer"]:
    """To the method chosen."""
    return "answer" if state.halted else "act"


def escalate(state: State) -> Literal["plan", "answer"]:
    """To the next method where the answer was not accepted."""
    return "plan" if _more(state) and _latest(state)[1]["doubt"] and not state.halted else "answer"


def graph() -> StateGraph[State, Context, Question, State]:
    """The state machine, not compiled."""
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


def _latest(state: State) -> tuple[str, Hop]:
    return list(state.hops.items())[-1]


def _more(state: State) -> bool:
    """Whether a further method could have its turn."""
    return len(state.hops) < len(state.order)


def _why(state: State) -> str:
    if not state.hops:
        return "first in the order"
    _, before = _latest(state)
    return f"{before['method']} was not accepted: {before['doubt']}"


async def _parts(state: State, asking: ModelCaller) -> dict[str, Step]:
    known = known_steps(handed_over(state.notes, state.hops.values()).values())
    given = planning.PlanInput(question=state.question, known=known)
    single = planning.Plan(steps=[planning.PlanStep.model_construct(question=state.question)])
    loss = "The parts of the question are taken to build on each other."
    return numbered((await ask_or(asking, planning.PLAN, given, single, loss)).steps)


METHOD = Method(
    name="auto",
    line="begin with a cheap method, check its answer, and go on with a stronger one where it does not hold",
    paper="none: our way of choosing among the methods above",
    when="you do not know how hard the question is, and an easy one should stay cheap",
    calls="2 to 14; 4 on two hops",
    graph=graph,
    state=State,
    settings=Settings,
)
