"""CRP-RAG: reasoning over a graph of possible steps (Xu et al., Electronics 2025, 14(1), 47).

    while a step is open:                                      section 3.2
        expand it by next steps                                equation 4
        merge similar ones                                     equations 5 and 6
    retrieve passages for each step                            equation 7
    aggregate them to its knowledge                            equation 8
    verify if an answer from the knowledge is certain          equations 9 and 10
    select_paths whose steps all have sufficient knowledge     section 3.4
    reason along each path                                     equations 11 and 12
    integrate the results of the paths                         equation 13

The steps that receive knowledge in one pass are the `wave`.

Ours: `try_shortcut` lets the question alone receive knowledge before the first layer, as section 5.8 proposes, and
`leave_shortcut` returns to the expansion. Notes of other runs replace knowledge in `path_answers.use_notes`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from langgraph.graph import START, StateGraph
from pydantic import Field

from sleuth.agents.formatting import Source, Step
from sleuth.agents.roles import reasoning
from sleuth.agents.roles.inputs import SourcesInput
from sleuth.agents.roles.judging import VERIFY
from sleuth.graphs.core.answer import Note, Threshold, make_verdict
from sleuth.graphs.core.context import Ablation, CheckedSettings, Context, InPaper
from sleuth.graphs.core.method import Method
from sleuth.graphs.core.node import Call, check_budget, gather_by_key, new_graph, node, node_with, nothing
from sleuth.graphs.core.state import Keyed, KeysOf, PassageRef, Question, RunState, Update
from sleuth.graphs.core.thresholds import choose_threshold
from sleuth.graphs.evidence.check import add_evidence_check
from sleuth.graphs.evidence.outcomes import as_steps, stated_answer, verdict_for
from sleuth.graphs.evidence.retrieval import as_sources, search_passages
from sleuth.graphs.methods.crp_rag import path_answers, reasoning_graph
from sleuth.graphs.methods.crp_rag.path_answers import Knowledge, Results, StepEvidence, Verification
from sleuth.graphs.methods.crp_rag.reasoning_graph import SOURCE, Node, Proposal, Structure, mark_final, open_sinks
from sleuth.tools.search import Mode


class Settings(CheckedSettings):
    """Settings of `--set`; those marked "ours" go beyond the paper and are off under `profile=paper`.

    The bounds are ours too, and stay on: the paper has none. Reaching one is a warning.
    """

    structure: Annotated[Structure, Ablation()] = Field(
        default="graph", description="or tree (no merging), chain, text (the question rewritten)"
    )
    samples: int = Field(default=2, ge=1, le=20, description="next steps drawn for each open step")
    merge_threshold: float = Field(default=0.85, ge=0, le=1, description="steps more alike than this become one")
    top_k: int = Field(default=5, ge=1, le=100, description="passages for a step")
    mode: Annotated[Mode, InPaper("dense")] = Field(default="graph", description="how to search (paper: dense)")
    perplexity_threshold: float | None = Field(
        default=None,
        ge=1,
        description="knowledge is sufficient below it; default: as fitted, else 2.0",
    )
    agreement_samples: int = Field(default=3, ge=1, le=20, description="answers compared without log-probabilities")
    aggregate: Annotated[bool, Ablation()] = Field(default=True, description="off: passages are read as they are")
    verify: Annotated[bool, Ablation()] = Field(
        default=True, description="off: the shortest and the longest path answer"
    )
    iterate: Annotated[bool, Ablation()] = Field(default=True, description="off: a path is answered in one call")
    shortcut: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: no graph where the question itself has its knowledge"
    )
    contradictions: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: warn where paths differ at a step that they share"
    )
    detailed: Annotated[bool, InPaper(True)] = Field(
        default=False, description="steps may explain or compare, summaries list examples and details (paper: true)"
    )
    last_step: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: the last step of a path is asked for the answer to the question"
    )
    max_depth: int = Field(default=5, ge=1, le=20, description="steps on a path")
    max_width: int = Field(default=4, ge=1, le=50, description="new steps in a layer")
    max_nodes: int = Field(default=16, ge=1, le=200, description="steps in the graph")
    max_paths: int = Field(default=4, ge=1, le=100, description="paths that are answered from")


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of CRP-RAG. Nodes are keyed by their number as text; "1" is the question."""

    nodes: Annotated[dict[str, Node], Keyed] = field(default_factory=dict)
    """The reasoning graph."""
    depth: int = 0
    """The number of layers below the question."""
    proposals: list[Proposal] = field(default_factory=list)
    """The proposed next steps until they are merged."""
    wave: Annotated[list[str], KeysOf("nodes")] = field(default_factory=list)
    """The nodes that receive knowledge now."""
    passages: Annotated[dict[str, list[PassageRef]], KeysOf("nodes"), Keyed] = field(default_factory=dict)
    """Passages found for each node."""
    knowledge: Annotated[dict[str, Knowledge], KeysOf("nodes"), Keyed] = field(default_factory=dict)
    """Summaries of these passages for each node."""
    verified: Annotated[dict[str, Verification], KeysOf("nodes"), Keyed] = field(default_factory=dict)
    """The verdict on the knowledge of each node; a node without passages is absent."""
    threshold: Threshold | None = None
    """The perplexity below which knowledge suffices."""
    paths: list[Annotated[list[str], KeysOf("nodes")]] = field(default_factory=list)
    """The selected paths, each from the question to a last step."""
    results: dict[str, Note] = field(default_factory=dict)
    """The result at each step of the selected paths, by the path to that step, such as "1>2"."""


@node
async def expand(state: State, call: Call[Settings]) -> Update:
    """Propose next steps for each open one, with the steps before as known conditions (section 3.2, equation 4)."""
    settings = call.settings
    nodes = state.nodes or reasoning_graph.initial_graph(state.question)
    sinks = open_sinks(nodes)
    if bound := reasoning_graph.reached_bound(nodes, state.depth, settings.max_depth, settings.max_nodes):
        return {"proposals": [], "warnings": [bound]}
    draws = reasoning_graph.sample_sinks(sinks, settings.structure, settings.samples)
    call.require(len(draws))
    proposals = await reasoning_graph.propose_steps(
        nodes, draws, as_steps(state.notes.values()), settings.structure, call.model, free=settings.detailed
    )
    return {"nodes": reasoning_graph.changed_nodes(state.nodes, nodes), "proposals": proposals}


@node
async def merge(state: State, call: Call[Settings]) -> Update:
    """Merge similar proposals, and add them below their steps (section 3.2, equations 5 and 6).

    An open step that nothing follows is a last step. When all sinks are last steps, the steps are to receive knowledge.
    """
    settings = call.settings
    threshold = settings.merge_threshold if settings.structure == "graph" else None
    similar = await reasoning_graph.group_similar(state.proposals, call.context.embedder, threshold, call.model)
    groups, left_out = reasoning_graph.keep_within_bounds(similar, state.nodes, settings.max_width, settings.max_nodes)
    call.require(sum(len(group) > 1 for group in groups))
    call.model.warn(*left_out)
    layer = await reasoning_graph.merge_similar(state.question, groups, call.model)
    grown = reasoning_graph.add_layer(state.nodes, layer)
    nodes = mark_final(grown, set(open_sinks(state.nodes)) & set(open_sinks(grown)))
    return {
        "nodes": reasoning_graph.changed_nodes(state.nodes, nodes),
        "depth": state.depth + bool(layer),
        "proposals": [],
        "wave": [] if open_sinks(nodes) else path_answers.without_answer(nodes, state.notes),
    }


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Search passages for each step (equation 7)."""
    texts = {key: state.nodes[key]["content"] for key in state.wave}
    queries = {key: call.settings.query(text, hop=text != state.question) for key, text in texts.items()}
    return {"passages": await search_passages(call, queries)}


@node
async def aggregate(state: State, call: Call[Settings]) -> Update:
    """Summarize each step's passages (equation 8)."""
    settings = call.settings
    keys = [key for key in state.wave if state.passages.get(key) and settings.aggregate]
    call.require(len(keys))
    asks = {
        key: path_answers.summarize_passages(
            state.nodes[key]["content"], call.passages(state.passages[key]), call.model, detailed=settings.detailed
        )
        for key in keys
    }
    return {"knowledge": await gather_by_key(asks)}


@node
async def verify(state: State, call: Call[Settings]) -> Update:
    """Answer each step from its knowledge alone, and measure the certainty of that answer (section 3.4).

    A step with an empty summary is measured too: a comparison may need none.
    """
    settings = call.settings
    backing = _evidence(state, state.wave, call) if settings.verify else {}
    requests = {
        key: SourcesInput(question=state.nodes[key]["content"], sources=back.sources)
        for key, back in backing.items()
        if back.sources or (back.passages and key != SOURCE)
    }
    call.require(len(requests))
    fitted = call.context.thresholds.get(VERIFY.prompt)
    limit = state.threshold or choose_threshold(settings.perplexity_threshold, fitted, path_answers.UNFITTED)
    model, samples = call.model, settings.agreement_samples
    measuring = {key: path_answers.measure_perplexity(each, limit["value"], model) for key, each in requests.items()}
    verified = await gather_by_key(measuring)
    unsure = [
        key for key, verification in verified.items() if verification["answer"] and verification["perplexity"] is None
    ]
    call.require(len(unsure) * samples)
    if unsure:
        model.warn(f"no log-probabilities: knowledge suffices where most of {samples} samples agree")
    comparing = {
        key: path_answers.self_consistency(requests[key], verified[key]["answer"], samples, model) for key in unsure
    }
    return {"verified": verified | await gather_by_key(comparing), "threshold": limit}


@node_with(notes_at_halt=nothing)
async def select_paths(state: State, call: Call[Settings]) -> Update:
    """Select the paths from the question to a last step whose steps all have sufficient knowledge (section 3.4).

    Without any, the question is refused.
    """
    settings = call.settings
    sufficient, most = _sufficient(state), settings.max_paths
    if settings.verify:
        paths = path_answers.most_certain(reasoning_graph.sufficient_paths(state.nodes, sufficient), state.verified)
    else:
        paths = reasoning_graph.shortest_and_longest(state.nodes)
    if not paths:
        missing = path_answers.describe_missing(state.nodes, sufficient, state.verified)
        return {"verdict": make_verdict("refused", missing, [])}
    left_out = [f"max_paths is reached: only {most} paths were answered from."] if len(paths) > most else []
    return {"paths": [list(path) for path in paths[:most]], "warnings": left_out}


@node
async def reason(state: State, call: Call[Settings]) -> Update:
    """Answer the steps of each path in turn, with the results before as known conditions (equations 11 and 12)."""
    settings, results = call.settings, dict[reasoning_graph.Path, Note]()
    paths = [tuple(path) for path in state.paths]
    steps = dict.fromkeys(key for path in paths for key in reasoning_graph.path_steps(path))
    backing = _evidence(state, steps, call)
    for stage in reasoning_graph.path_prefixes(paths) if settings.iterate else [paths]:
        asked = [path for path in stage if not backing[path[-1]].note]
        if not call.affords(len(asked)):
            break
        asks = {
            path: _take_step(state, path, backing, results, call)
            if settings.iterate
            else _take_path(state, path, backing, call)
            for path in asked
        }
        answers = await gather_by_key(asks)
        results |= {path: note for path in stage if (note := backing[path[-1]].note)} | answers
    if settings.contradictions:
        call.model.warn(*path_answers.find_contradictions(state.nodes, results))
    stored = {">".join(path): note for path, note in results.items()}
    return {"results": stored, "halted": not all(path in results for path in paths)}


@node
async def integrate(state: State, call: Call[Settings]) -> Update:
    """Answer with the result of the only path's last step, or with those of all paths, combined (equation 13)."""
    paths = [tuple(path) for path in state.paths]
    results = {tuple(path.split(">")): note for path, note in state.results.items()}
    answered = [path for path in paths if path in results and results[path]["finding"]]
    text = results[answered[0]]["finding"] if answered else ""
    notes = [*state.notes.values(), *(note for path in answered for note in path_answers.notes_on_path(path, results))]
    if state.halted or (len(answered) > 1 and not call.affords(1)):
        verdict = make_verdict("out_of_budget", text, notes)
    else:
        if len(answered) > 1:
            text = await path_answers.integrate(state.question, answered, results, call.model)
        verdict = verdict_for(call.model, text, notes) if text else make_verdict("unknown", "", [])
    return {"notes": path_answers.notes_of(results, state.nodes, state.notes), "verdict": verdict}


# Ours: the question itself is tried before the graph is built. Its sink is open only then.


@node
async def try_shortcut(state: State, call: Call[Settings]) -> Update:
    """Retrieve for the question alone if `shortcut` is on or notes were inherited."""
    if not (call.settings.verify and (call.settings.shortcut or state.notes)):
        return {}
    return {"nodes": reasoning_graph.initial_graph(state.question), "wave": [SOURCE]}


@node
async def leave_shortcut(state: State, call: Call[Settings]) -> Update:
    """Count the question's own knowledge as insufficient: it led to no answer."""
    return {"verified": {key: {**tried, "sufficient": False} for key, tried in state.verified.items()}}


# Routers


def grow(state: State) -> Literal["expand", "retrieve", "select_paths"]:
    """Route to the next layer until every sink is a last step; then to the retrieval for the steps."""
    if state.halted:
        return "select_paths"
    if state.wave:
        return "retrieve"
    return "expand" if not state.nodes or open_sinks(state.nodes) else "select_paths"


def after_verify(state: State) -> Literal["select_paths", "leave_shortcut"]:
    """Route to the paths, unless the shortcut's knowledge does not suffice."""
    lacking = open_sinks(state.nodes) and SOURCE not in _sufficient(state)
    return "leave_shortcut" if lacking and not state.halted else "select_paths"


def after_select_paths(state: State) -> Literal["reason", "__end__"]:
    """Route to the reasoning, unless there is no path."""
    return "__end__" if state.verdict else "reason"


def after_reason(state: State) -> Literal["integrate", "leave_shortcut"]:
    """Route to the integration, unless the shortcut found no answer."""
    tried = state.results if open_sinks(state.nodes) else {}
    return "leave_shortcut" if tried and not any(result["finding"] for result in tried.values()) else "integrate"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    nodes = try_shortcut, expand, merge, retrieve, aggregate, verify, select_paths, reason, integrate, leave_shortcut
    graph = new_graph(State, *nodes)
    graph.add_edge(START, "try_shortcut")
    graph.add_conditional_edges("try_shortcut", grow)
    graph.add_conditional_edges("expand", check_budget, {"left": "merge", "spent": "select_paths"})
    graph.add_conditional_edges("merge", grow)
    graph.add_edge("retrieve", "aggregate")
    graph.add_conditional_edges("aggregate", check_budget, {"left": "verify", "spent": "select_paths"})
    graph.add_conditional_edges("verify", after_verify)
    graph.add_conditional_edges("select_paths", after_select_paths)
    graph.add_conditional_edges("reason", after_reason)
    graph.add_edge("leave_shortcut", "expand")
    add_evidence_check(graph, "select_paths", "integrate")
    return graph


# What the nodes above are made of


async def _take_step(
    state: State,
    path: reasoning_graph.Path,
    backing: Mapping[str, StepEvidence],
    results: Results,
    call: Call[Settings],
) -> Note:
    """Answer a path's last step, with the results before it as known conditions (equations 11 and 12)."""
    last = state.nodes[path[-1]]
    prefixes = (path[:length] for length in range(2, len(path)))
    before = [results[prefix] for prefix in prefixes if not backing[prefix[-1]].note]
    request = reasoning.TakeStepInput(
        question=state.question,
        step=last["content"],
        known=(*_inherited_steps(state, path), *as_steps(before)),
        sources=backing[path[-1]].sources,
    )
    is_end = call.settings.last_step and len(path) > 1 and last["end"]
    role = reasoning.TAKE_LAST_STEP if is_end else reasoning.TAKE_STEP
    reply = await call.model.ask_or(role, request, reasoning.Result(), f"Step {path[-1]} has no result.")
    return path_answers.step_result(last["content"], stated_answer(reply.answer, last["content"]), [backing[path[-1]]])


async def _take_path(
    state: State, path: reasoning_graph.Path, backing: Mapping[str, StepEvidence], call: Call[Settings]
) -> Note:
    """Answer a path in one reading of all its steps (the ablation of section 5.1)."""
    steps = reasoning_graph.path_steps(path)
    request = reasoning.TakePathInput(
        question=state.question,
        steps=tuple(state.nodes[key]["content"] for key in steps),
        known=_inherited_steps(state, path),
        sources=tuple(source for key in steps for source in backing[key].sources),
    )
    loss = f"{path_answers.path_label(path).capitalize()} has no answer."
    reply = await call.model.ask_or(reasoning.TAKE_PATH, request, reasoning.Result(), loss)
    answer = stated_answer(reply.answer, state.question)
    return path_answers.step_result(state.question, answer, [backing[key] for key in steps])


def _inherited_steps(state: State, path: reasoning_graph.Path) -> tuple[Step, ...]:
    """Return the inherited notes; the question itself has them among its sources already."""
    return () if len(path) == 1 else as_steps(state.notes.values())


def _evidence(state: State, keys: Iterable[str], call: Call[Settings]) -> dict[str, StepEvidence]:
    """Return what each step is answered from."""
    evidence = {}
    for key in keys:
        passages = call.passages(state.passages.get(key, []))
        evidence[key] = StepEvidence(sources=as_sources(passages), passages=passages)
        if call.settings.aggregate:
            knowledge = state.knowledge.get(key, Knowledge(text="", citations=[]))
            sources = (Source(title=state.nodes[key]["content"], text=knowledge["text"]),) if knowledge["text"] else ()
            evidence[key] = StepEvidence(sources=sources, citations=knowledge["citations"], passages=passages)
    return path_answers.use_notes(evidence, state.nodes, state.notes)


def _sufficient(state: State) -> set[str]:
    return path_answers.sufficient_steps(state.nodes, state.verified, state.notes)


METHOD = Method(
    name="crp-rag",
    line="grow a graph of possible steps, gather knowledge for each, answer along the paths where it suffices",
    paper="CRP-RAG, for complex logical reasoning and knowledge planning (Xu et al., Electronics 14(1), 2025)",
    when="there is more than one way to the answer, or a refusal is better than a guess",
    calls="3 to 24; 4 on two hops",
    answers="integrate",
    graph=graph,
    settings=Settings,
)
