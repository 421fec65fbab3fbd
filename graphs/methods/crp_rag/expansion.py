"""Expansion of CRP-RAG's reasoning graph: steps are proposed, and similar ones merged (section 3.2)."""

import asyncio
from collections.abc import Sequence
from typing import Literal

from sleuth.agents.formatting import Step
from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles import planning
from sleuth.graphs.core import ask_or
from sleuth.graphs.methods.crp_rag.reasoning_graph import (
    SOURCE,
    Nodes,
    Proposal,
    ancestors,
    group_rows,
    merge_duplicates,
    merge_proposals,
    repeats_ancestor,
)
from sleuth.tools.search.vectors import Embedder

Structure = Literal["graph", "tree", "chain", "text"]


def limit_reached(depth: int, max_depth: int, steps: int, max_nodes: int) -> str | None:
    """Return the limit that prevents a further layer, with which the graph would have at least this number of steps."""
    if depth >= max_depth:
        return "max_depth"
    return "max_nodes" if steps > max_nodes else None


def sample_sinks(sinks: Sequence[str], structure: Structure, samples: int) -> list[str]:
    """Return the sinks to propose steps for, one entry per sample: all of them once before any of them again.

    A chain branches at the question only; a text has one step.
    """
    if structure == "text":
        return list(sinks)
    branching = [sink for sink in sinks if structure != "chain" or sink == SOURCE]
    return [*sinks, *branching * (samples - 1)]


async def propose_steps(
    nodes: Nodes, sinks: Sequence[str], known: tuple[Step, ...], structure: Structure, model: ModelCaller
) -> list[Proposal]:
    """Sample a next step for each entry of `sinks`; steps that repeat one of their ancestors are dropped."""
    step = _rewrite if structure == "text" else _next_step
    proposals = await asyncio.gather(*(step(nodes, sink, known, model) for sink in sinks))
    new = [proposal for proposal in proposals if not repeats_ancestor(nodes, proposal)]
    return merge_duplicates(new, across=structure == "graph")


async def _next_step(nodes: Nodes, sink: str, known: tuple[Step, ...], model: ModelCaller) -> Proposal:
    question = nodes[SOURCE]["content"]
    steps = tuple(nodes[key]["content"] for key in ancestors(nodes, sink))
    given = planning.ExpandInput(question=question, steps=steps, known=known)
    itself = planning.NextStep.model_construct(step=question, final=True)
    said = await ask_or(model, planning.EXPAND, given, itself, "The question itself is proposed as the last step.")
    return Proposal(content=said.step, end=said.final, prev=(sink,))


async def _rewrite(nodes: Nodes, sink: str, known: tuple[Step, ...], model: ModelCaller) -> Proposal:
    """Propose a rewording of the question as the only step (the structure "text" of section 5.5)."""
    question = nodes[SOURCE]["content"]
    given = planning.RefineInput(question=question, answers=known, original=question)
    as_it_is, loss = planning.Refined.model_construct(question=question), "The question is searched for unchanged."
    said = await ask_or(model, planning.REFINE, given, as_it_is, loss)
    return Proposal(content=said.question.strip() or question, end=True, prev=(sink,))


async def group_similar(
    proposals: Sequence[Proposal], embedder: Embedder | None, threshold: float | None, model: ModelCaller
) -> list[list[Proposal]]:
    """Group proposals of nearly the same meaning: the inner product of their encodings exceeds the threshold (equation
    5).

    Without a threshold, or without an embedder (with a warning), every proposal is a group of its own.
    """
    if embedder is None and threshold is not None:
        model.warn("There is no embedder: steps are merged only where they are the same word for word.")
    if embedder is None or threshold is None or len(proposals) < 2:
        return [[proposal] for proposal in proposals]
    vectors = await asyncio.to_thread(embedder.embed_passages, [proposal.content for proposal in proposals])
    return [[proposals[at] for at in group] for group in group_rows((vectors @ vectors.T).tolist(), threshold)]


async def merge_similar(question: str, similar: Sequence[Sequence[Proposal]], model: ModelCaller) -> list[Proposal]:
    """Return one node per group: one call merges a group of several, which keeps all edges (equation 6)."""
    return await asyncio.gather(*(_fuse(question, group, model) for group in similar))


async def _fuse(question: str, group: Sequence[Proposal], model: ModelCaller) -> Proposal:
    if len(group) == 1:
        return group[0]
    given = planning.FuseInput(question=question, steps=tuple(proposal.content for proposal in group))
    first = planning.Fused(step=group[0].content)
    said = await ask_or(model, planning.FUSE, given, first, "The first of the similar steps represents all of them.")
    return merge_proposals(group, said.step)
