"""CRP-RAG: a graph of possible reasoning steps, each with its own knowledge; only paths of sufficient knowledge answer.

    plan -> plan ... -> retrieve -> aggregate -> verify -> answer      (Xu et al., Electronics 2025, 14(1), 47)

The nodes that receive knowledge in one pass are the `wave`: all of the finished graph, or at first the question alone
(the shortcut that section 5.8 proposes), which leads back to `plan` unless its knowledge answers the question.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Literal

from langgraph.graph import START, StateGraph
from pydantic import Field

from sleuth.agents.formatting import Source
from sleuth.agents.roles.inputs import SourcesInput
from sleuth.agents.roles.judging import VERIFY
from sleuth.graphs.core import (
    Call,
    Context,
    InPaper,
    Keyed,
    Method,
    MethodSettings,
    Question,
    RunState,
    RunUpdate,
    Threshold,
    choose_threshold,
)
from sleuth.graphs.core.node import node
from sleuth.graphs.evidence import as_sources, as_steps, load_passages, make_verdict, search_passages, verdict_for
from sleuth.graphs.methods.crp_rag import path_answers, reasoning_graph
from sleuth.graphs.methods.crp_rag.fidelity import PARTS
from sleuth.graphs.methods.crp_rag.path_answers import Knowledge, StepEvidence, Verification, inherited_notes
from sleuth.graphs.methods.crp_rag.reasoning_graph import SOURCE, Node, Path, Structure, mark_final, open_sinks
from sleuth.tools.search import Mode, Query

MOST_PATHS = 1_000
"""Paths that are compared by their perplexity: a graph of 16 steps may have more than can be listed."""


class Settings(MethodSettings):
    """Settings of `--set`; those marked "ours" go beyond the paper and are off under `profile=paper`.

    The bounds are ours too, and stay on: the paper has none. Reaching one is a warning.
    """

    structure: Structure = Field(
        default="graph", description="or tree (no merging), chain, text (the question rewritten) (ablation)"
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
    aggregate: bool = Field(default=True, description="off: passages are read as they are (ablation)")
    verify: bool = Field(default=True, description="off: the shortest and the longest path answer (ablation)")
    iterate: bool = Field(default=True, description="off: a path is answered in one call (ablation)")
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
    wave: list[str] = field(default_factory=list)
    """The nodes that receive knowledge now."""
    passages: Annotated[dict[str, list[str]], Keyed] = field(default_factory=dict)
    """Passages found for each node, by archive reference."""
    knowledge: Annotated[dict[str, Knowledge], Keyed] = field(default_factory=dict)
    """Summaries of these passages for each node."""
    verified: Annotated[dict[str, Verification], Keyed] = field(default_factory=dict)
    """The verdict on the knowledge of each node; a node without passages is absent."""
    threshold: Threshold | None = None
    """The perplexity below which knowledge suffices."""


class Update(RunUpdate, total=False):
    """Fields that a node may change; None removes a key."""

    nodes: dict[str, Node]
    depth: int
    wave: list[str]
    passages: dict[str, list[str]]
    knowledge: dict[str, Knowledge]
    verified: dict[str, Verification]
    threshold: Threshold


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """Add a layer: propose next steps for every open one, and merge similar ones (section 3.2)."""
    settings = call.settings
    nodes = state.nodes or reasoning_graph.initial_graph(state.question)
    if not state.nodes and settings.verify and (settings.shortcut or state.notes):
        known = list(inherited_notes(nodes, state.notes))
        return {"nodes": mark_final(nodes, known), "wave": [] if known else [SOURCE]}
    sinks = open_sinks(nodes)
    deepest = state.depth >= settings.max_depth
    if deepest or len(nodes) - 1 + len(sinks) > settings.max_nodes:
        limit = "max_depth" if deepest else "max_nodes"
        loss = f"{limit} is reached: {len(sinks)} open steps were taken as the last ones."
        return {**_planned(state, mark_final(nodes, sinks)), "warnings": [loss]}
    draws = reasoning_graph.sample_sinks(sinks, settings.structure, settings.samples)
    call.require(len(draws))
    proposals = await reasoning_graph.propose_steps(
        nodes, draws, as_steps(state.notes.values()), settings.structure, call.model, free=settings.detailed
    )
    threshold = settings.merge_threshold if settings.structure == "graph" else None
    similar = await reasoning_graph.group_similar(proposals, call.context.embedder, threshold, call.model)
    room = min(settings.max_width, settings.max_nodes + 1 - len(nodes))
    fuses = sum(len(group) > 1 for group in similar[:room])
    call.require(fuses)
    if len(similar) > room:
        full = "max_width" if room == settings.max_width else "max_nodes"
        call.model.warn(f"{full} is reached: {len(similar) - room} proposed steps were left out.")
    layer = await reasoning_graph.merge_similar(state.question, similar[:room], call.model)
    below = {key for proposal in layer for key in proposal.prev}
    nodes = mark_final(reasoning_graph.add_layer(nodes, layer), [sink for sink in sinks if sink not in below])
    return {**_planned(state, nodes), "depth": state.depth + 1}


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Search passages for each step (equation 7)."""
    settings, asked = call.settings, state.question
    queries = {
        key: Query(text=(text := state.nodes[key]["content"]), k=settings.top_k, mode=settings.mode, hop=text != asked)
        for key in state.wave
    }
    return {"passages": await search_passages(call.context, queries)}


@node
async def aggregate(state: State, call: Call[Settings]) -> Update:
    """Summarize each step's passages (equation 8)."""
    settings = call.settings
    found = [key for key in state.wave if state.passages.get(key) and settings.aggregate]
    call.require(len(found))
    shown = {key: await load_passages(call.context.archive, state.passages[key]) for key in found}
    model = call.model
    contents = {key: state.nodes[key]["content"] for key in found}
    asks = (path_answers.summarise(contents[key], shown[key], model, detailed=settings.detailed) for key in found)
    return {"knowledge": dict(zip(found, await asyncio.gather(*asks), strict=True))}


@node
async def verify(state: State, call: Call[Settings]) -> Update:
    """Answer each step from its knowledge alone, and measure the certainty of that answer (section 3.4).

    A step with an empty summary is measured too: a comparison may need none.
    """
    settings = call.settings
    backing = await _backing(state, state.wave, call) if settings.verify else {}
    given = {
        key: SourcesInput(question=state.nodes[key]["content"], sources=back.sources)
        for key, back in backing.items()
        if back.sources or (back.shown and key != SOURCE)
    }
    call.require(len(given))
    fitted = call.context.thresholds.get(VERIFY.prompt)
    limit = state.threshold or choose_threshold(settings.perplexity_threshold, fitted, path_answers.UNFITTED)
    model, samples = call.model, settings.agreement_samples
    measuring = (path_answers.measure_perplexity(each, limit["value"], model) for each in given.values())
    verified = dict(zip(given, await asyncio.gather(*measuring), strict=True))
    unsure = [key for key, found in verified.items() if found["answer"] and found["perplexity"] is None]
    call.require(len(unsure) * samples)
    if unsure:
        model.warn(f"no log-probabilities: knowledge suffices where most of {samples} samples agree")
    comparing = (path_answers.self_consistency(given[key], verified[key]["answer"], samples, model) for key in unsure)
    verified |= zip(unsure, await asyncio.gather(*comparing), strict=True)
    return {"verified": verified, "threshold": limit}


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """Answer every path of sufficient knowledge step by step, and combine the answers (section 3.4)."""
    settings = call.settings
    if state.halted:
        return {"verdict": make_verdict("out_of_budget", "", [])}
    paths = _paths(state, settings)
    if not paths:
        missing = path_answers.describe_missing(state.nodes, _sufficient(state), state.verified)
        return {"verdict": make_verdict("refused", missing, [])}
    if len(paths) > settings.max_paths:
        call.model.warn(f"max_paths is reached: only {settings.max_paths} paths were answered from.")
    if settings.verify:
        paths = path_answers.most_certain(paths, state.verified)
    paths = paths[: settings.max_paths]
    backing = await _backing(
        state, dict.fromkeys(key for path in paths for key in reasoning_graph.path_steps(path)), call
    )
    walk = path_answers.PathAnswerer(
        nodes=state.nodes,
        notes=state.notes,
        backing=backing,
        iterate=settings.iterate,
        last_step=settings.last_step,
    )
    results = await walk.results(paths, call.model, call.affords)
    if settings.contradictions:
        call.model.warn(*path_answers.find_contradictions(state.nodes, results))
    told = [path for path in paths if path in results and results[path]["finding"]]
    found = [*state.notes.values(), *(note for path in told for note in path_answers.notes_on_path(path, results))]
    text = results[told[0]]["finding"] if told else ""
    unfinished = not all(path in results for path in paths)
    if not told and not unfinished and open_sinks(state.nodes):
        shortcut = Verification(**{**state.verified[SOURCE], "sufficient": False})
        return {"verified": {SOURCE: shortcut}}
    if unfinished or (len(told) > 1 and not call.affords(1)):
        verdict = make_verdict("out_of_budget", text, found)
    else:
        text = await walk.integrate(told, results, call.model) if len(told) > 1 else text
        verdict = verdict_for(call.model, text, found) if text else make_verdict("unknown", "", [])
    return {"notes": walk.notes_of(results), "verdict": verdict}


# Routers. A run whose budget has no room for a node's calls is halted there, and ends with what it has.


def grow(state: State) -> Literal["plan", "retrieve", "answer"]:
    """Route to the plan until every sink is a last step; then to the retrieval for the steps."""
    if state.halted:
        return "answer"
    if state.wave:
        return "retrieve"
    return "plan" if open_sinks(state.nodes) else "answer"


def check_knowledge(state: State) -> Literal["verify", "answer"]:
    """Route to the verification."""
    return "answer" if state.halted else "verify"


def expand_or_answer(state: State) -> Literal["plan", "answer"]:
    """Route to the plan if only the question has been tried so far and its knowledge does not suffice."""
    tried = state.wave == [SOURCE] and not state.halted
    return "plan" if tried and SOURCE not in _sufficient(state) else "answer"


def after_answer(state: State) -> Literal["plan", "__end__"]:
    """Route to the plan if the shortcut found no answer."""
    return "plan" if state.verdict is None else "__end__"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = StateGraph(State, context_schema=Context, input_schema=Question)
    graph.add_node(plan)
    graph.add_node(retrieve)
    graph.add_node(aggregate)
    graph.add_node(verify)
    graph.add_node(answer)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", grow)
    graph.add_edge("retrieve", "aggregate")
    graph.add_conditional_edges("aggregate", check_knowledge)
    graph.add_conditional_edges("verify", expand_or_answer)
    graph.add_conditional_edges("answer", after_answer)
    return graph


# What the nodes above are made of


def _planned(state: State, nodes: dict[str, Node]) -> Update:
    """Return the changes of the graph; once it is finished, its steps are to receive knowledge."""
    changed = {key: node for key, node in nodes.items() if state.nodes.get(key) != node}
    known = {SOURCE, *inherited_notes(nodes, state.notes)}
    return {"nodes": changed, "wave": [] if open_sinks(nodes) else [key for key in nodes if key not in known]}


async def _backing(state: State, keys: Iterable[str], call: Call[Settings]) -> dict[str, StepEvidence]:
    """Return the evidence of each node, all loaded before the first call: after a crash, calls are matched by their
    order.
    """
    return {key: await _evidence(state, key, call) for key in keys}


async def _evidence(state: State, key: str, call: Call[Settings]) -> StepEvidence:
    """Return a note with the node's question, or its passages; for the question itself all notes too."""
    if known := inherited_notes(state.nodes, state.notes).get(key):
        return StepEvidence(sources=path_answers.notes_as_sources([known]), note=known)
    notes = path_answers.notes_as_sources(state.notes.values()) if key == SOURCE else ()
    shown = await load_passages(call.context.archive, state.passages.get(key, []))
    if not call.settings.aggregate:
        return StepEvidence(sources=(*notes, *as_sources(shown)), shown=shown)
    knowledge = state.knowledge.get(key, Knowledge(text="", citations=[]))
    summary = Source(title=state.nodes[key]["content"], text=knowledge["text"])
    sources = (*notes, summary) if summary.text else notes
    return StepEvidence(sources=sources, citations=knowledge["citations"], shown=shown)


def _sufficient(state: State) -> set[str]:
    """Return the nodes with sufficient knowledge; the question needs none as soon as it has further steps."""
    found = {key for key, checked in state.verified.items() if checked["sufficient"]}
    needless = {SOURCE} if len(state.nodes) > 1 else set()
    return found | needless | inherited_notes(state.nodes, state.notes).keys()


def _paths(state: State, settings: Settings) -> list[Path]:
    """Return the paths to answer from, at most MOST_PATHS."""
    if not settings.verify:
        return reasoning_graph.shortest_and_longest(state.nodes)
    return list(islice(reasoning_graph.sufficient_paths(state.nodes, _sufficient(state)), MOST_PATHS))


METHOD = Method(
    name="crp-rag",
    line="grow a graph of possible steps, gather knowledge for each, answer along the paths where it suffices",
    paper="CRP-RAG, for complex logical reasoning and knowledge planning (Xu et al., Electronics 14(1), 2025)",
    when="there is more than one way to the answer, or a refusal is better than a guess",
    calls="3 to 27; 6 on two hops",
    graph=graph,
    state=State,
    settings=Settings,
    parts=PARTS,
)
