"""CRP-RAG's reasoning graph: steps in layers below the question, its only source (section 3.2).

Edges lead from a layer to the next one only, so the graph is acyclic even if steps repeat. To expand it, steps are
proposed, and similar ones merged.
"""

import asyncio
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Literal

from typing_extensions import TypedDict

from sleuth.agents.formatting import Step
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.role import Role
from sleuth.agents.roles import planning
from sleuth.agents.roles.inputs import StepsInput
from sleuth.graphs.core.state import KeysOf
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.text.normalization import comparison_key

Structure = Literal["graph", "tree", "chain", "text"]

SOURCE = "1"
"""The question itself."""

MOST_PATHS = 1_000
"""Paths that are compared by their perplexity: a graph of 16 steps may have more than can be listed."""

Path = tuple[str, ...]
"""Keys of nodes from the source on, each a successor of the one before."""


class Node(TypedDict):
    """One step: `start` at the source only, `end` at a last step, `next` and `prev` its neighbors."""

    content: str
    start: bool
    end: bool
    next: Annotated[list[str], KeysOf("nodes")]
    prev: Annotated[list[str], KeysOf("nodes")]


Nodes = Mapping[str, Node]


class Proposal(TypedDict):
    """A step that may be added below the nodes in `prev`."""

    content: str
    end: bool
    prev: Annotated[list[str], KeysOf("nodes")]


def initial_graph(question: str) -> dict[str, Node]:
    """Return a graph of the question alone."""
    return {SOURCE: Node(content=question, start=True, end=False, next=[], prev=[])}


def open_sinks(nodes: Nodes) -> list[str]:
    """Return the nodes at which the graph still grows."""
    return [key for key, node in nodes.items() if not node["next"] and not node["end"]]


def ancestors(nodes: Nodes, key: str) -> list[str]:
    """Return a node and its ancestors, without the source, in the order in which they were added."""
    keys = {key}
    for earlier in sorted(nodes, key=int, reverse=True):
        if earlier in keys:
            keys.update(nodes[earlier]["prev"])
    return sorted(keys - {SOURCE}, key=int)


def repeats_ancestor(nodes: Nodes, proposal: Proposal) -> bool:
    """Return whether a proposed step repeats one of its ancestors."""
    before = {earlier for key in proposal["prev"] for earlier in ancestors(nodes, key)}
    return comparison_key(proposal["content"]) in {comparison_key(nodes[key]["content"]) for key in before}


def merge_duplicates(proposals: Sequence[Proposal], *, across: bool) -> list[Proposal]:
    """Merge proposals that are the same word for word: below the same node, or `across` all of them."""
    same: dict[tuple[str, tuple[str, ...]], list[Proposal]] = {}
    for proposal in proposals:
        place = () if across else tuple(proposal["prev"])
        same.setdefault((comparison_key(proposal["content"]), place), []).append(proposal)
    return [merge_proposals(each, each[0]["content"]) for each in same.values()]


def merge_proposals(similar: Sequence[Proposal], content: str) -> Proposal:
    """Return one node instead of several, below all of theirs; it is a last step only if all of them are."""
    prev = dict.fromkeys(key for proposal in similar for key in proposal["prev"])
    return Proposal(content=content, end=all(proposal["end"] for proposal in similar), prev=list(prev))


def add_layer(nodes: Nodes, proposals: Sequence[Proposal]) -> dict[str, Node]:
    """Return the graph with one more layer."""
    new = {key: Node(**node) for key, node in nodes.items()}
    last = max(map(int, nodes))
    for at, proposal in enumerate(proposals, start=last + 1):
        assert all(int(key) <= last for key in proposal["prev"]), (
            "an edge must lead from an earlier layer to a new node"
        )
        key = str(at)
        new[key] = Node(content=proposal["content"], start=False, end=proposal["end"], next=[], prev=proposal["prev"])
        for before in proposal["prev"]:
            new[before] = new[before] | {"next": [*new[before]["next"], key]}
    return new


def mark_final(nodes: Nodes, keys: Container[str]) -> dict[str, Node]:
    """Return the graph with these nodes as last steps."""
    return {key: node | {"end": node["end"] or key in keys} for key, node in nodes.items()}


def changed_nodes(before: Nodes, nodes: Nodes) -> dict[str, Node]:
    """Return the nodes that are new or have changed."""
    return {key: node for key, node in nodes.items() if before.get(key) != node}


def sufficient_paths(nodes: Nodes, sufficient: Container[str]) -> list[Path]:
    """Return the paths from the source to a sink over sufficient nodes only (section 3.4), at most MOST_PATHS."""
    leading: set[str] = set()
    for key in sorted(nodes, key=int, reverse=True):
        after = nodes[key]["next"]
        if key in sufficient and (not after or leading & set(after)):
            leading.add(key)

    def walk(path: Path) -> Iterator[Path]:
        after = nodes[path[-1]]["next"]
        if not after:
            yield path
        for key in after:
            if key in leading:
                yield from walk((*path, key))

    return list(islice(walk((SOURCE,)), MOST_PATHS)) if SOURCE in leading else []


def shortest_and_longest(nodes: Nodes) -> list[Path]:
    """Return the first and the last sink's path in the order of a breadth-first search (section 5.1)."""
    by_end: dict[str, Path] = {}
    queue: list[Path] = [(SOURCE,)]
    for path in queue:
        if path[-1] not in by_end:
            by_end[path[-1]] = path
            queue += [(*path, key) for key in nodes[path[-1]]["next"]]
    ends = [path for path in by_end.values() if not nodes[path[-1]]["next"]]
    return list(dict.fromkeys([ends[0], ends[-1]]))


def path_steps(path: Path) -> Path:
    """Return the nodes to answer on a path: those after the question, or the question alone."""
    return path[1:] or path


def path_prefixes(paths: Sequence[Path]) -> list[list[Path]]:
    """Return the prefixes of paths up to each step, shorter ones first; a shared prefix is answered once."""
    longest = max(map(len, paths), default=0)
    shortest = 1 if (SOURCE,) in paths else 2
    return [
        list(dict.fromkeys(path[:length] for path in paths if len(path) >= length))
        for length in range(shortest, longest + 1)
    ]


# Expansion


def sample_sinks(sinks: Sequence[str], structure: Structure, samples: int) -> list[str]:
    """Return the sinks to propose steps for, one entry per sample: all of them once before any of them again.

    A chain branches at the question only; a text has one step.
    """
    if structure == "text":
        return list(sinks)
    branching = [sink for sink in sinks if structure != "chain" or sink == SOURCE]
    return [*sinks, *branching * (samples - 1)]


async def propose_steps(
    nodes: Nodes,
    sinks: Sequence[str],
    findings: tuple[Step, ...],
    structure: Structure,
    model: ModelCaller,
    *,
    free: bool,
) -> list[Proposal]:
    """Sample a next step for each entry of `sinks`; steps that repeat one of their ancestors are dropped.

    A step is about one fact; if `free`, it may also be an explanation, a comparison or a calculation.
    """
    role = planning.EXPAND_FREELY if free else planning.EXPAND
    if structure == "text":
        return [await _rewrite(nodes, sink, findings, model) for sink in sinks]
    proposals = await asyncio.gather(*(_next_step(nodes, sink, findings, model, role) for sink in sinks))
    new = [proposal for proposal in proposals if not repeats_ancestor(nodes, proposal)]
    return merge_duplicates(new, across=structure == "graph")


async def _next_step(
    nodes: Nodes,
    sink: str,
    findings: tuple[Step, ...],
    model: ModelCaller,
    role: Role[planning.ExpandInput, planning.NextStep],
) -> Proposal:
    question = nodes[SOURCE]["content"]
    steps = tuple(nodes[key]["content"] for key in ancestors(nodes, sink))
    request = planning.ExpandInput(question=question, steps=steps, known=findings)
    itself = planning.NextStep.model_construct(step=question, final=True)
    reply = await model.ask_or(role, request, itself, "The question itself is proposed as the last step.")
    return Proposal(content=reply.step, end=reply.final, prev=[sink])


async def _rewrite(nodes: Nodes, sink: str, findings: tuple[Step, ...], model: ModelCaller) -> Proposal:
    """Propose a rewording of the question as the only step (the structure "text" of section 5.5)."""
    question = nodes[SOURCE]["content"]
    request = StepsInput(question=question, known=findings)
    as_it_is, loss = planning.Rewritten.model_construct(question=question), "The question is searched for unchanged."
    reply = await model.ask_or(planning.REWRITE_QUESTION, request, as_it_is, loss)
    return Proposal(content=reply.question, end=True, prev=[sink])


async def group_similar(
    proposals: Sequence[Proposal], embedder: Embedder | None, threshold: float | None, model: ModelCaller
) -> list[list[Proposal]]:
    """Group proposals of nearly the same meaning: the inner product of their encodings exceeds the threshold (equation
    5). Those connected by such pairs are one group, whatever their order.

    Without a threshold, or without an embedder (with a warning), every proposal is a group of its own.
    """
    if embedder is None and threshold is not None:
        model.warn("There is no embedder: steps are merged only where they are the same word for word.")
    if embedder is None or threshold is None or len(proposals) < 2:
        return [[proposal] for proposal in proposals]
    from scipy.sparse.csgraph import connected_components

    vectors = await asyncio.to_thread(embedder.embed_passages, [proposal["content"] for proposal in proposals])
    _, labels = connected_components((vectors @ vectors.T).astype(float) > threshold, directed=False)
    groups: dict[int, list[Proposal]] = {}
    for proposal, label in zip(proposals, labels.tolist(), strict=True):
        groups.setdefault(label, []).append(proposal)
    return list(groups.values())


async def merge_similar(question: str, similar: Sequence[Sequence[Proposal]], model: ModelCaller) -> list[Proposal]:
    """Return one node per group: one call merges a group of several, which keeps all edges (equation 6)."""

    async def fuse(group: Sequence[Proposal]) -> Proposal:
        first, *others = group
        if not others:
            return first
        request = planning.FuseInput(question=question, steps=tuple(proposal["content"] for proposal in group))
        loss = "The first of the similar steps represents all of them."
        reply = await model.ask_or(planning.FUSE, request, planning.Fused(step=first["content"]), loss)
        return merge_proposals(group, reply.step)

    return await asyncio.gather(*map(fuse, similar))


# Ours: bounds of the graph


def reached_bound(nodes: Nodes, depth: int, max_depth: int, max_nodes: int) -> str:
    """Return a warning if the graph may not grow further."""
    sinks = open_sinks(nodes)
    if depth < max_depth and len(nodes) - 1 + len(sinks) <= max_nodes:
        return ""
    bound = "max_depth" if depth >= max_depth else "max_nodes"
    return f"{bound} is reached: {len(sinks)} open steps were taken as the last ones."


def keep_within_bounds(
    similar: Sequence[list[Proposal]], nodes: Nodes, max_width: int, max_nodes: int
) -> tuple[list[list[Proposal]], list[str]]:
    """Return the groups of proposals that a layer has room for, and a warning if others are left out."""
    room = min(max_width, max_nodes + 1 - len(nodes))
    if len(similar) <= room:
        return list(similar), []
    full = "max_width" if room == max_width else "max_nodes"
    return list(similar[:room]), [f"{full} is reached: {len(similar) - room} proposed steps were left out."]
