"""How CRP-RAG's reasoning graph gets a new layer: steps are proposed, and similar ones become one (section 3.2)."""

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
    distinct,
    groups,
    joined,
    leading_to,
    repeats,
)
from sleuth.tools.search.vectors import Embedder

Structure = Literal["graph", "tree", "chain", "text"]


def bound(depth: int, max_depth: int, steps: int, max_nodes: int) -> str | None:
    """The bound that keeps the graph from a further layer, with which it would have at least so many steps."""
    if depth >= max_depth:
        return "max_depth"
    return "max_nodes" if steps > max_nodes else None


def drawn(sinks: Sequence[str], structure: Structure, samples: int) -> list[str]:
    """The sinks to draw steps for, one entry each: all of them once before any of them again.

    A chain branches at the question only; a text has one step.
    """
    if structure == "text":
        return list(sinks)
    branching = [sink for sink in sinks if structure != "chain" or sink == SOURCE]
    return [*sinks, *branching * (samples - 1)]


async def propose(
    nodes: Nodes, sinks: Sequence[str], known: tuple[Step, ...], structure: Structure, asking: ModelCaller
) -> list[Proposal]:
    """A sampled next step for each sink named, as often as it is named; none that repeats what leads to it."""
    step = _rewrite if structure == "text" else _next_step
    proposals = await asyncio.gather(*(step(nodes, sink, known, asking) for sink in sinks))
    new = [proposal for proposal in proposals if not repeats(nodes, proposal)]
    return distinct(new, across=structure == "graph")


async def _next_step(nodes: Nodes, sink: str, known: tuple[Step, ...], asking: ModelCaller) -> Proposal:
    question = nodes[SOURCE]["content"]
    steps = tuple(nodes[key]["content"] for key in leading_to(nodes, sink))
    given = planning.ExpandInput(question=question, steps=steps, known=known)
    itself = planning.NextStep.model_construct(step=question, final=True)
    said = await ask_or(asking, planning.EXPAND, given, itself, "The question itself is proposed as the last step.")
    return Proposal(content=said.step, end=said.final, prev=(sink,))


async def _rewrite(nodes: Nodes, sink: str, known: tuple[Step, ...], asking: ModelCaller) -> Proposal:
    """The question said in another way, as the only step (the structure "text" of section 5.5)."""
    question = nodes[SOURCE]["content"]
    given = planning.RefineInput(question=question, answers=known, original=question)
    as_it_is, loss = planning.Refined.model_construct(question=question), "The question is searched for as it is."
    said = await ask_or(asking, planning.REFINE, given, as_it_is, loss)
    return Proposal(content=said.question.strip() or question, end=True, prev=(sink,))


async def alike(
    proposals: Sequence[Proposal], embedder: Embedder | None, threshold: float | None, asking: ModelCaller
) -> list[list[Proposal]]:
    """Which proposals say nearly the same: those whose encodings' inner product exceeds the threshold (equation 5).

    None do without a threshold, or, which is worth a warning, without an embedder.
    """
    if embedder is None and threshold is not None:
        asking.warn("There is no embedder: steps are merged only where they are the same word for word.")
    if embedder is None or threshold is None or len(proposals) < 2:
        return [[proposal] for proposal in proposals]
    vectors = await asyncio.to_thread(embedder.embed_passages, [proposal.content for proposal in proposals])
    return [[proposals[at] for at in group] for group in groups((vectors @ vectors.T).tolist(), threshold)]


async def fuse(question: str, similar: Sequence[Sequence[Proposal]], asking: ModelCaller) -> list[Proposal]:
    """One node for each group: a group of several is fused by one call, and keeps all edges (equation 6)."""
    return await asyncio.gather(*(_fuse(question, group, asking) for group in similar))


async def _fuse(question: str, group: Sequence[Proposal], asking: ModelCaller) -> Proposal:
    if len(group) == 1:
        return group[0]
    given = planning.FuseInput(question=question, steps=tuple(proposal.content for proposal in group))
    first = planning.Fused(step=group[0].content)
    said = await ask_or(asking, planning.FUSE, given, first, "The first of the similar steps stands for all.")
    return joined(group, said.step)
