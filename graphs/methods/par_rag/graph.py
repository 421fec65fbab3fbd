"""PAR-RAG: plan all the steps, then act on and review each one against coarse and fine evidence (Zhang et al., 2025).

    plan -> retrieve_coarse -> draft -> retrieve_fine -> review -> (refine -> retrieve_coarse ...)* -> answer

The steps in work at one time are the `wave`: one in the paper, several where their answers do not need each other.
A step's note is its entry in the trajectory; a step without a note is still to be done.
"""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from langgraph.graph import END, START, StateGraph
from pydantic import Field

from sleuth.agents.roles import judging
from sleuth.graphs.core import Call, Context, Keyed, Method, MethodSettings, Note, Question, RunState, RunUpdate
from sleuth.graphs.core.node import node
from sleuth.graphs.evidence import conclude, final_answer, find, load
from sleuth.graphs.methods.par_rag.steps import (
    Draft,
    Step,
    already_known,
    built_on,
    draft_step,
    past_steps,
    plainly,
    plan_steps,
    ready,
    refine_step,
    review_step,
    step_note,
    step_query,
    told_alone,
    trajectory,
    unfinished,
)
from sleuth.tools.search import Mode
from sleuth.tools.types import Passage


class Settings(MethodSettings):
    """What can be set with `--set`; what is marked "ours" goes beyond the paper and is off under `profile=paper`."""

    coarse_k: int = Field(default=5, ge=1, le=100, description="passages for a draft (paper: 10)")
    fine_k: int = Field(default=4, ge=1, le=100, description="passages for a review (paper: 10)")
    coarse_mode: Mode = Field(default="graph", description="how coarse retrieval searches (paper: dense)")
    fine_mode: Mode = Field(default="graph", description="how fine retrieval searches (paper: hybrid)")
    fine_with_question: bool = Field(default=True, description="ours: fine retrieval with question and draft")
    max_requeries: int = Field(default=1, ge=0, le=10, description="new questions per step after UNCONFIDENT")
    plan: bool = Field(default=True, description="off: the question is a plan of one step (ablation)")
    review: bool = Field(default=True, description="off: drafts are final (ablation)")
    parallel: bool = Field(default=True, description="ours: steps that do not need each other run side by side")
    max_returns: int = Field(default=1, ge=0, le=10, description="ours: times a review may reopen an earlier step")
    skip_supported: bool = Field(default=True, description="ours: no review where the passage cited alone fits")

    def as_in_paper(self) -> "Settings":
        """Drafts from vector search, reviews from hybrid, ten passages each; in order, no going back, all reviewed."""
        ours = {"parallel": False, "max_returns": 0, "skip_supported": False, "fine_with_question": False}
        return self.model_copy(
            update={"coarse_mode": "dense", "fine_mode": "hybrid", "coarse_k": 10, "fine_k": 10, **ours}
        )


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """Steps are keyed by their number as text, so that a repeated update is harmless."""

    plan: Annotated[dict[str, Step], Keyed] = field(default_factory=dict)
    """The steps, "1" first."""
    wave: list[str] = field(default_factory=list)
    """The steps in work now."""
    coarse: Annotated[dict[str, list[str]], Keyed] = field(default_factory=dict)
    """Passages shown to the draft of each step, by archive reference."""
    drafts: Annotated[dict[str, Draft], Keyed] = field(default_factory=dict)
    """The draft of each step before its review."""
    fine: Annotated[dict[str, list[str]], Keyed] = field(default_factory=dict)
    """Passages shown to the review of each step, by archive reference."""
    requeries: Annotated[dict[str, int], Keyed] = field(default_factory=dict)
    """New questions that reviews have put to each step."""
    returns: int = 0
    """How often a review has reopened an earlier step."""


class Update(RunUpdate, total=False):
    """What a node may change; None removes a key."""

    plan: dict[str, Step]
    wave: list[str]
    coarse: dict[str, list[str]]
    drafts: dict[str, Draft]
    fine: dict[str, list[str]]
    requeries: dict[str, int]
    returns: int


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """The whole question at once becomes a list of steps (section 3.4); what is known already is not asked again."""
    call.require()
    settings = call.settings
    planned = await plan_steps(
        state.question, state.notes, call.model, planned=settings.plan, side_by_side=settings.parallel
    )
    notes = already_known(planned, state.notes)
    wave = [key for key in ready(planned, (), side_by_side=settings.parallel) if not notes.get(key)]
    return {"plan": planned, "notes": notes, "wave": wave}


@node
async def retrieve_coarse(state: State, call: Call[Settings]) -> Update:
    """Passages similar to each step's question (section 3.5)."""
    settings = call.settings
    queries = {
        key: replace(step_query(state.plan, state.notes, key), k=settings.coarse_k, mode=settings.coarse_mode)
        for key in state.wave
        if state.plan[key]["action"] == "Retrieve"
    }
    return {"coarse": await find(call.context, queries)}


@node
async def draft(state: State, call: Call[Settings]) -> Update:
    """Each step is answered from its passages alone, with citations, or without search from the trajectory."""
    call.require(len(state.wave))
    settings = call.settings
    shown = await _shown(state.coarse, state.wave, call)
    asks = (draft_step(state.plan, state.notes, key, shown.get(key, []), call.model) for key in state.wave)
    written = await asyncio.gather(*asks)
    drafts = dict(zip(state.wave, written, strict=True))
    final = [key for key in state.wave if not _to_review(state.plan[key], drafts[key], shown.get(key, []), settings)]
    notes: dict[str, Note | None] = {
        key: step_note(state.plan[key], plainly(drafts[key], shown.get(key, []))) for key in final
    }
    return {"drafts": drafts, "notes": notes}


@node
async def retrieve_fine(state: State, call: Call[Settings]) -> Update:
    """Passages for each draft, now that it says what to look for (section 3.6); without one, others than before."""
    settings = call.settings
    drafts = {key: state.drafts[key]["answer"] for key in _open(state)}
    in_vain = await _shown(state.coarse, [key for key in drafts if not drafts[key]], call)
    queries = {}
    for key, text in drafts.items():
        query = step_query(state.plan, state.notes, key, draft=text, with_question=settings.fine_with_question)
        seen = frozenset(passage.id for passage in in_vain.get(key, []))
        queries[key] = replace(query, k=settings.fine_k, mode=settings.fine_mode, seen=seen)
    return {"fine": await find(call.context, queries)}


@node
async def review(state: State, call: Call[Settings]) -> Update:
    """Each draft passes or is revised, or its step, or an earlier one, is asked anew (section 3.6)."""
    call.require(len(_open(state)))
    settings, opened = call.settings, _open(state)
    shown = await _shown(state.fine, opened, call)
    past = past_steps(state.plan, state.notes) if settings.max_returns else None
    asks = (review_step(state.plan, key, state.drafts[key], shown[key], past=past, asking=call.model) for key in opened)
    reviewed = await asyncio.gather(*asks)
    said = dict(zip(opened, reviewed, strict=True))
    update: Update = {"notes": {}, "plan": {}, "wave": [], "requeries": {}}
    blaming = next((key for key in opened if _blamed(state, said[key][0], settings)), None)
    for key in opened:
        if key == blaming:
            continue
        verdict, draft = said[key]
        unsure, asked = verdict.status == "UNCONFIDENT", state.requeries.get(key, 0)
        if unsure and asked < settings.max_requeries:
            update["plan"][key] = Step(**{**state.plan[key], "question": verdict.question})
            update["requeries"][key] = asked + 1
            update["wave"].append(key)
        else:
            update["notes"][key] = step_note(state.plan[key], draft, "the review was not confident" if unsure else "")
    if blaming:
        _reopen(state, update, blaming, said[blaming][0], settings)
    return update


@node
async def refine(state: State, call: Call[Settings]) -> Update:
    """The next steps' questions, with what they leave open replaced by what was found (section 3.5)."""
    wave = ready(state.plan, state.notes, side_by_side=call.settings.parallel)
    built = [key for key in wave if state.plan[key]["needs"]]
    call.require(len(built))
    asks = (refine_step(state.question, state.plan, state.notes, key, call.model) for key in built)
    questions = await asyncio.gather(*asks)
    steps = {key: Step(**{**state.plan[key], "question": new}) for key, new in zip(built, questions, strict=True)}
    handed_over = {key: found for key, found in state.notes.items() if key not in state.plan}
    notes = already_known(steps, handed_over)  # now that the question has its names
    wave = [key for key in wave if key not in notes]
    return {"plan": steps, "notes": notes, "wave": wave}


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """The question answered from the trajectory; that it is unknown is an answer too (section 3.5)."""
    notes = list(trajectory(state.plan, state.notes).values())
    if state.halted or not call.affords():
        return {"verdict": conclude("out_of_budget", notes[-1]["finding"] if notes else "", notes)}
    return {
        "verdict": await final_answer(call.model, state.question, notes),
    }


# Routers. A run whose budget has no room for a node's calls is halted there, and ends with what it has.


def onward(state: State) -> Literal["retrieve_coarse", "refine", "answer"]:
    """To the steps in work, else to the next ones, else to the end."""
    if state.halted or not (state.wave or unfinished(state.plan, state.notes)):
        return "answer"
    return "retrieve_coarse" if _open(state) else "refine"


def after_draft(state: State) -> Literal["retrieve_fine", "refine", "answer"]:
    """To the review of what needs one."""
    if _open(state) and not state.halted:
        return "retrieve_fine"
    return "refine" if unfinished(state.plan, state.notes) and not state.halted else "answer"


def graph() -> StateGraph[State, Context, Question, State]:
    """The state machine, not compiled."""
    graph = StateGraph(State, context_schema=Context, input_schema=Question)
    graph.add_node(plan)
    graph.add_node(retrieve_coarse)
    graph.add_node(draft)
    graph.add_node(retrieve_fine)
    graph.add_node(review)
    graph.add_node(refine)
    graph.add_node(answer)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", onward)
    graph.add_edge("retrieve_coarse", "draft")
    graph.add_conditional_edges("draft", after_draft)
    graph.add_edge("retrieve_fine", "review")
    graph.add_conditional_edges("review", onward)
    graph.add_conditional_edges("refine", onward)
    graph.add_edge("answer", END)
    return graph


# One step at a time: what the nodes above are made of


def start_from_plan(steps: dict[str, Step], settings: Settings) -> Update:
    """Return the update of `plan` for steps that come from elsewhere."""
    return {"plan": steps, "wave": ready(steps, (), side_by_side=settings.parallel)}


def _open(state: State) -> list[str]:
    """The steps in work whose answer does not stand yet."""
    return [key for key in state.wave if key not in state.notes]


async def _shown(shown: dict[str, list[str]], keys: list[str], call: Call[Settings]) -> dict[str, list[Passage]]:
    """The steps' passages, all loaded before the first ask: after a crash, asks are matched by their order."""
    return {key: await load(call.context.archive, shown[key]) for key in keys if key in shown}


def _to_review(step: Step, draft: Draft, shown: list[Passage], settings: Settings) -> bool:
    stands = settings.skip_supported and told_alone(step["question"], draft, shown)
    return settings.review and step["action"] == "Retrieve" and not stands


def _blamed(state: State, said: judging.StepReview, settings: Settings) -> str | None:
    """The earlier step that a review holds to be wrong, if it may be reopened."""
    earlier = said.earlier_step if isinstance(said, judging.Review) and said.status == "UNCONFIDENT" else None
    past = list(trajectory(state.plan, state.notes))
    key = past[earlier - 1] if earlier and earlier <= len(past) else None
    return key if key in state.plan and state.returns < settings.max_returns else None


def _reopen(state: State, update: Update, by: str, said: judging.StepReview, settings: Settings) -> None:
    """The blamed step is asked anew; it and all that was built on it lose their answers."""
    blamed = _blamed(state, said, settings) or by
    remark = f"asked again: the review of step {by} doubted {state.notes[blamed]['finding']!r}"
    update["plan"][blamed] = Step(**{**state.plan[blamed], "question": said.question, "remark": remark})
    update["notes"] |= dict.fromkeys(built_on(state.plan, blamed) | {by})
    update["wave"] = [blamed]
    update["returns"] = state.returns + 1


METHOD = Method(
    name="par-rag",
    line="plan all the steps, then act on and review each one against coarse and fine evidence",
    paper="Credible plan-driven RAG method for multi-hop question answering (Zhang et al., 2025)",
    when="the answer takes several look-ups that build on each other",
    calls="3 to 12; 6 on two hops",
    graph=graph,
    state=State,
    settings=Settings,
    start_from_plan=start_from_plan,
)
