"""PAR-RAG: plan, then act on and review each step (Zhang et al., 2025, Algorithm 1).

    plan the steps P                                           section 3.4
    for each step, with question Q:
        R = retrieve_coarse(Q)                                 section 3.5
        A = draft(Q, R)                                        section 3.5
        R* = retrieve_fine(A)                                  section 3.6
        A* = review(Q, A, R*): accept, revise, or ask again    section 3.6, appendix A.4.3
        append (Q, A*) to the trajectory: the step's note      section 3.5
        refine the next Q with A*                              section 3.5
    answer from the trajectory                                 section 3.5

The steps in progress are the `wave`: one in the paper, several if their answers do not depend on each other. A step
without a note is still to be done. What the paper lacks is in `extensions.py`, or marked as ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, Literal

from langgraph.graph import START, StateGraph
from pydantic import Field

from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.roles import inputs, judging, planning, reading
from sleuth.graphs.core.answer import Note
from sleuth.graphs.core.context import Ablation, CheckedSettings, Context, InPaper
from sleuth.graphs.core.method import Method, summarize_update
from sleuth.graphs.core.node import Call, gather_by_key, new_graph, node, node_with
from sleuth.graphs.core.state import Keyed, KeysOf, PassageRef, Question, RunState, Update, same_question
from sleuth.graphs.evidence.check import add_evidence_check
from sleuth.graphs.evidence.citations import verify_quotes
from sleuth.graphs.evidence.outcomes import answer_question, as_steps, stated_answer
from sleuth.graphs.evidence.retrieval import as_sources, search_passages
from sleuth.graphs.methods.par_rag import steps
from sleuth.graphs.methods.par_rag.extensions import answer_from_notes, is_clearly_supported, reopen_rejected_step
from sleuth.graphs.methods.par_rag.steps import Step, StepDraft, ready_steps, step_note
from sleuth.tools.search import Mode
from sleuth.tools.types import Passage


class Settings(CheckedSettings):
    """Settings of `--set`; those marked "ours" go beyond the paper and are off under `profile=paper`."""

    plan: Annotated[bool, Ablation()] = Field(default=True, description="off: the question is a plan of one step")
    parallel: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: steps that do not need each other run in parallel"
    )
    search_all: Annotated[bool, InPaper(True)] = Field(
        default=False, description="all steps search and are reviewed, also those that conclude (paper: true)"
    )
    coarse_k: Annotated[int, InPaper(10)] = Field(
        default=5, ge=1, le=100, description="passages for a draft (paper: 10)"
    )
    coarse_mode: Annotated[Mode, InPaper("dense")] = Field(
        default="graph", description="how coarse retrieval searches (paper: dense)"
    )
    sentences: Annotated[bool, InPaper(True)] = Field(
        default=False, description="drafts are full sentences, for the fine query (paper: true)"
    )
    skip_supported: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: accept a draft without review if only the cited passage fits the question"
    )
    fine_k: Annotated[int, InPaper(10)] = Field(
        default=4, ge=1, le=100, description="passages for a review (paper: 10)"
    )
    fine_mode: Annotated[Mode, InPaper("knowledge-graph")] = Field(
        default="graph", description="how fine retrieval searches (paper: knowledge-graph)"
    )
    fine_with_question: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: fine retrieval with question and draft"
    )
    review: Annotated[bool, Ablation()] = Field(default=True, description="off: drafts are final")
    check_revisions: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: a revised answer needs a citation that can be verified"
    )
    max_requeries: int = Field(
        default=1, ge=0, le=10, description="new questions per step after UNCONFIDENT (the paper states no limit)"
    )
    max_returns: Annotated[int, InPaper(0)] = Field(
        default=1, ge=0, le=10, description="ours: times a review may reopen an earlier step"
    )
    answer_with_sources: Annotated[bool, InPaper(True)] = Field(
        default=False, description="the last prompt has the cited passages of all steps (paper: true)"
    )


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of PAR-RAG. Steps are keyed by their number as text, so that a repeated update is harmless."""

    plan: Annotated[dict[str, Step], Keyed] = field(default_factory=dict)
    """The steps, "1" first."""
    wave: Annotated[list[str], KeysOf("plan")] = field(default_factory=list)
    """The steps in progress."""
    coarse: Annotated[dict[str, list[PassageRef]], KeysOf("plan"), Keyed] = field(default_factory=dict)
    """Passages shown to the draft of each step."""
    drafts: Annotated[dict[str, StepDraft], KeysOf("plan"), Keyed] = field(default_factory=dict)
    """The draft of each step before its review."""
    fine: Annotated[dict[str, list[PassageRef]], KeysOf("plan"), Keyed] = field(default_factory=dict)
    """Passages shown to the review of each step."""
    requeries: Annotated[dict[str, int], KeysOf("plan"), Keyed] = field(default_factory=dict)
    """The number of new questions that reviews have given each step."""
    returns: int = 0
    """The number of times that a review has reopened an earlier step."""

    def open_steps(self) -> list[str]:
        """Return the steps in progress that have no accepted answer."""
        return [key for key in self.wave if key not in self.notes]

    def is_unfinished(self) -> bool:
        """Return whether a step is still to be done."""
        return any(key not in self.notes for key in self.plan)

    def trajectory(self) -> list[Note]:
        """Return the notes: those of another run first (ours), then those of finished steps, in the plan's order."""
        return list(steps.trajectory(self.plan, self.notes).values())


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """Plan the steps of the whole question (section 3.4)."""
    call.require()
    settings = call.settings
    planned = await plan_steps(state.question, state.notes, call.model, settings)
    notes = answer_from_notes(planned, state.notes)  # ours
    wave = [key for key in ready_steps(planned, (), parallel=settings.parallel) if not notes.get(key)]
    return {"plan": planned, "notes": notes, "wave": wave}


@node
async def retrieve_coarse(state: State, call: Call[Settings]) -> Update:
    """Search passages similar to each step's question (sections 3.3 and 3.5)."""
    settings = call.settings
    keys = [key for key in state.wave if _searches(state.plan[key], settings)]
    queries = {key: steps.step_query(settings, state.plan, state.notes, key) for key in keys}
    queries = {key: replace(query, k=settings.coarse_k, mode=settings.coarse_mode) for key, query in queries.items()}
    return {"coarse": await search_passages(call, queries)}


@node
async def draft(state: State, call: Call[Settings]) -> Update:
    """Answer each step from its passages alone, with citations (section 3.5, appendix A.4.2)."""
    call.require(len(state.wave))
    settings = call.settings
    drafted = await gather_by_key({key: draft_step(state, key, call) for key in state.wave})
    notes = {}
    for key, reply in drafted.items():
        step, passages = state.plan[key], call.passages(state.coarse.get(key, []))
        is_clear = settings.skip_supported and is_clearly_supported(step["question"], reply, passages)  # ours
        if is_clear or not (settings.review and _searches(step, settings)):
            notes[key] = step_note(step, reply, passages)
    return {"drafts": drafted, "notes": notes}


@node
async def retrieve_fine(state: State, call: Call[Settings]) -> Update:
    """Search passages for each draft (sections 3.3 and 3.6)."""
    settings = call.settings
    queries = {}
    for key in state.open_steps():
        text = state.drafts[key]["answer"]
        both = settings.fine_with_question
        query = steps.step_query(settings, state.plan, state.notes, key, draft=text, with_question=both)
        read_in_vain = [] if text else state.coarse.get(key, [])  # ours: no draft came of them
        seen = frozenset(passage.id for passage in call.passages(read_in_vain))
        queries[key] = replace(query, k=settings.fine_k, mode=settings.fine_mode, seen=seen)
    if settings.fine_mode == "knowledge-graph":
        call.require(len(queries))
        names = await gather_by_key({key: extract_names(queries[key].text, call.model) for key in queries})
        queries = {key: replace(query, entities=names[key]) for key, query in queries.items()}
    return {"fine": await search_passages(call, queries)}


@node
async def review(state: State, call: Call[Settings]) -> Update:
    """Accept or revise each draft (section 3.6), or ask a new question in place of its step's (appendix A.4.3)."""
    opened = state.open_steps()
    call.require(len(opened))
    passages = {key: call.passages(state.fine[key]) for key in opened}
    reviews = await gather_by_key({key: review_step(state, key, passages[key], call) for key in opened})
    update: Update = {"notes": {}, "plan": {}, "wave": [], "requeries": {}}
    for key, (verdict, reply) in reviews.items():
        unsure, asked = verdict.status == "UNCONFIDENT", state.requeries.get(key, 0)
        if unsure and asked < call.settings.max_requeries:
            update["plan"][key] = state.plan[key] | {"question": verdict.question}
            update["requeries"][key] = asked + 1
            update["wave"].append(key)
        else:
            doubt = "the review was not confident" if unsure else ""
            read = {each.id: each for each in [*call.passages(state.coarse.get(key, [])), *passages[key]]}
            update["notes"][key] = step_note(state.plan[key], reply, list(read.values()), doubt)
    verdicts = {key: verdict for key, (verdict, _) in reviews.items()}
    if state.returns < call.settings.max_returns:  # ours
        reopened = reopen_rejected_step(state.plan, state.notes, update["notes"], verdicts)
        update = reopened | {"returns": state.returns + 1} if reopened else update
    return update


@node
async def refine(state: State, call: Call[Settings]) -> Update:
    """Insert reviewed findings into the next steps' questions (Algorithm 1; section 3.5 inserts the draft's)."""
    wave = ready_steps(state.plan, state.notes, parallel=call.settings.parallel)
    dependent = [key for key in wave if state.plan[key]["needs"]]
    call.require(len(dependent))
    questions = await gather_by_key({key: refine_step(state, key, call.model) for key in dependent})
    refined = {key: state.plan[key] | {"question": question} for key, question in questions.items()}
    inherited = {key: note for key, note in state.notes.items() if key not in state.plan}
    notes = answer_from_notes(refined, inherited)  # ours: the question has its names now
    return {"plan": refined, "notes": notes, "wave": [key for key in wave if key not in notes]}


@node_with(notes_at_halt=State.trajectory)
async def answer(state: State, call: Call[Settings]) -> Update:
    """Answer the question from the trajectory (section 3.5); "unknown" is an answer too (appendix A.4.2)."""
    call.require()
    notes = state.trajectory()
    cited = _cited(state, notes, call) if call.settings.answer_with_sources else None
    return {"verdict": await answer_question(call.model, state.question, notes, cited=cited)}


# Routers


def onward(state: State) -> Literal["retrieve_coarse", "refine", "answer"]:
    """Route to the steps in progress, else to the next ones, else to the answer."""
    if state.halted:
        return "answer"
    if state.open_steps():
        return "retrieve_coarse"
    return "refine" if state.is_unfinished() else "answer"


def after_draft(state: State) -> Literal["retrieve_fine", "refine", "answer"]:
    """Route to the review of drafts that need one."""
    after = onward(state)
    return "retrieve_fine" if after == "retrieve_coarse" else after


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, plan, retrieve_coarse, draft, retrieve_fine, review, refine, answer)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", onward)
    graph.add_edge("retrieve_coarse", "draft")
    graph.add_conditional_edges("draft", after_draft)
    graph.add_edge("retrieve_fine", "review")
    graph.add_conditional_edges("review", onward)
    graph.add_conditional_edges("refine", onward)
    add_evidence_check(graph, "answer")
    return graph


# One step at a time: what the nodes above are made of


async def plan_steps(
    question: str, notes: Mapping[str, Note], model: ModelCaller, settings: Settings
) -> dict[str, Step]:
    """Plan the steps of a question (section 3.4); with `parallel` they name their needs.

    Ours: a plan that would answer the question without a search is replaced by one step that searches for it.
    """
    single = planning.PlanStep.model_construct(question=question)  # may be longer than a reply's
    if not settings.plan:
        return steps.number_steps([single])
    request = inputs.StepsInput(question=question, known=as_steps(notes.values()))  # notes of another run: ours
    loss = "The question is taken as a plan of one step."
    made: planning.Plan | planning.OrderedPlan
    if settings.parallel:
        made = await model.ask_or(planning.PLAN, request, planning.Plan(steps=[single]), loss)
    else:
        made = await model.ask_or(planning.PLAN_IN_ORDER, request, planning.OrderedPlan(steps=[single]), loss)
    answered = [note["question"] for note in notes.values() if note["finding"]]
    searched = [step.question for step in made.steps if settings.search_all or step.action == "Retrieve"]
    is_known = all(any(same_question(each, other) for other in answered) for each in searched)
    return steps.number_steps([single] if is_known else made.steps)


async def plan_with(question: str, model: ModelCaller, values: Mapping[str, Any]) -> dict[str, Step]:
    """Return the plan that this method would make with these settings, for approval before the run."""
    return await plan_steps(question, {}, model, Settings.model_validate(values))


def start_from_plan(planned: dict[str, Step], settings: Settings) -> Update:
    """Return the update of `plan` for steps that come from elsewhere."""
    return {"plan": planned, "wave": ready_steps(planned, (), parallel=settings.parallel)}


async def draft_step(state: State, key: str, call: Call[Settings]) -> StepDraft:
    """Answer a step from its passages (section 3.5), or from the trajectory if it does not search (ours)."""
    question, loss = state.plan[key]["question"], f"Step {key} has no draft."
    if not _searches(state.plan[key], call.settings):
        past = inputs.TrajectoryInput(question=question, trajectory=as_steps(state.trajectory()))
        concluded = await call.model.ask_or(reading.CONCLUDE, past, reading.Conclusion(answer=""), loss)
        return StepDraft(answer=stated_answer(concluded.answer, question), citations=[])
    passages = call.passages(state.coarse[key])
    request = inputs.SourcesInput(question=question, sources=as_sources(passages))
    role = reading.DRAFT_SENTENCE if call.settings.sentences else reading.DRAFT
    reply = await call.model.ask_or(role, request, reading.Draft(answer=""), loss)
    answer = stated_answer(reply.answer, "" if call.settings.sentences else question)
    citations = verify_quotes(call.model, answer, reply.citations, passages, question=question)  # ours
    return StepDraft(answer=answer, citations=citations)


async def extract_names(text: str, model: ModelCaller) -> tuple[str, ...]:
    """Return the names in a query, from which the knowledge graph is searched (section 3.3)."""
    loss = "The names are taken by rule."
    reply = await model.ask_or(reading.EXTRACT_NAMES, reading.NamesInput(text=text), reading.Names(names=[]), loss)
    return tuple(dict.fromkeys(reply.names))


async def review_step(
    state: State, key: str, passages: Sequence[Passage], call: Call[Settings]
) -> tuple[judging.StepReview, StepDraft]:
    """Return the review, and the final answer if the review accepts or revises it (section 3.6)."""
    draft, question = state.drafts[key], state.plan[key]["question"]
    loss = f"The draft of step {key} is accepted without a review."
    request = judging.ReviewStepInput(question=question, answer=draft["answer"], sources=as_sources(passages))
    reply: judging.StepReview | judging.Review
    if call.settings.max_returns:  # ours: it may reject a step of the trajectory
        looking_back = judging.ReviewInput(**vars(request), trajectory=as_steps(state.trajectory()))
        reply = await call.model.ask_or(judging.REVIEW, looking_back, judging.Review(status="PASS"), loss)
    else:
        reply = await call.model.ask_or(judging.REVIEW_STEP, request, judging.StepReview(status="PASS"), loss)
    if reply.status != "REVISED":
        return reply, draft
    answer = stated_answer(reply.answer, question)
    citations = verify_quotes(call.model, answer, reply.citations, passages, question=question)  # ours
    if citations or not call.settings.check_revisions:  # ours
        return reply, StepDraft(answer=answer, citations=citations)
    call.model.warn(f"The revised answer of step {key} cites no retrieved passage; keeping the draft.")
    return reply, draft


async def refine_step(state: State, key: str, model: ModelCaller) -> str:
    """Return a step's question with findings in place of what it leaves open (section 3.5)."""
    planned, needs = state.plan[key]["planned"], state.plan[key]["needs"]
    answers = as_steps(state.notes[need] for need in needs if need in state.notes)
    request = planning.RefineInput(question=planned, answers=answers, original=state.question)
    as_planned, loss = planning.Refined(question=planned), f"Step {key} is asked as planned."
    return (await model.ask_or(planning.REFINE, request, as_planned, loss)).question


def _cited(state: State, notes: list[Note], call: Call[Settings]) -> list[Passage]:
    """Return the passages that the steps of the trajectory cite, each once, in the order of the steps."""
    references = chain(*state.coarse.values(), *state.fine.values())
    by_id = {passage.id: passage for passage in call.passages(references)}
    names = dict.fromkeys(name for note in notes for name in note["passages"])
    return [by_id[name] for name in names if name in by_id]


def _searches(step: Step, settings: Settings) -> bool:
    """Return whether a step searches; one that concludes from the trajectory does not, except in the paper."""
    return settings.search_all or step["action"] == "Retrieve"


def summarize(update: Mapping[str, Any]) -> list[str]:
    """Return lines that describe the update of a node."""
    coarse = [f"passages for step {key}: {len(refs)}" for key, refs in (update.get("coarse") or {}).items()]
    fine = [f"passages for the review of step {key}: {len(refs)}" for key, refs in (update.get("fine") or {}).items()]
    drafts = [f"draft of step {key}: {draft['answer'] or '–'}" for key, draft in (update.get("drafts") or {}).items()]
    return [*coarse, *fine, *drafts, *summarize_update(update)]


METHOD = Method(
    name="par-rag",
    line="plan all the steps, then act on and review each one against coarse and fine evidence",
    paper="Credible plan-driven RAG method for multi-hop question answering (Zhang et al., 2025)",
    when="the answer takes several look-ups that build on each other",
    calls="3 to 12; 6 on two hops",
    graph=graph,
    settings=Settings,
    summarize_update=summarize,
    start_from_plan=start_from_plan,
)
