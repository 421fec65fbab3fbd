"""CRP-RAG's reasoning graph: steps in layers below the question, its only source (section 3.2). Pure functions.

Edges lead from a layer to the next one only, so the graph is acyclic even if steps repeat.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import TypedDict

from sleuth.tools.text import comparison_key

SOURCE = "1"
"""The question itself."""

Path = tuple[str, ...]
"""Keys of nodes from the source on, each a successor of the one before."""


class Node(TypedDict):
    """One step: `start` at the source only, `end` at a last step, `next` and `prev` its neighbors."""

    content: str
    start: bool
    end: bool
    next: list[str]
    prev: list[str]


Nodes = Mapping[str, Node]


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A step that may be added below the nodes in `prev`."""

    content: str
    end: bool
    prev: tuple[str, ...]


def initial_graph(question: str) -> dict[str, Node]:
    """Return a graph of the question alone."""
    return {SOURCE: Node(content=question, start=True, end=False, next=[], prev=[])}


def open_sinks(nodes: Nodes) -> list[str]:
    """Return the nodes at which the graph still grows."""
    return [key for key, node in nodes.items() if not node["next"] and not node["end"]]


def ancestors(nodes: Nodes, key: str) -> list[str]:
    """Return a node and its ancestors, without the source, in the order in which they were added."""
    found = {key}
    for earlier in sorted(nodes, key=int, reverse=True):
        if earlier in found:
            found.update(nodes[earlier]["prev"])
    return sorted(found - {SOURCE}, key=int)


def repeats_ancestor(nodes: Nodes, proposal: Proposal) -> bool:
    """Return whether a proposed step repeats one of its ancestors."""
    before = {comparison_key(nodes[earlier]["content"]) for key in proposal.prev for earlier in ancestors(nodes, key)}
    return comparison_key(proposal.content) in before


def merge_duplicates(proposals: Sequence[Proposal], *, across: bool) -> list[Proposal]:
    """Merge proposals that are the same word for word: below the same node, or `across` all of them."""
    same: dict[tuple[str, tuple[str, ...]], list[Proposal]] = {}
    for proposal in proposals:
        same.setdefault((comparison_key(proposal.content), () if across else proposal.prev), []).append(proposal)
    return [merge_proposals(each, each[0].content) for each in same.values()]


def merge_proposals(similar: Sequence[Proposal], content: str) -> Proposal:
    """Return one node instead of several, below all of theirs; it is a last step only if all of them are."""
    prev = dict.fromkeys(key for proposal in similar for key in proposal.prev)
    return Proposal(content=content, end=all(proposal.end for proposal in similar), prev=tuple(prev))


def group_rows(similarity: Sequence[Sequence[float]], threshold: float) -> list[list[int]]:
    """Group texts by similarity: each joins the first group whose first member is similar to it."""
    found: list[list[int]] = []
    for at, row in enumerate(similarity):
        group = next((group for group in found if row[group[0]] > threshold), None)
        if group:
            group.append(at)
        else:
            found.append([at])
    return found


def add_layer(nodes: Nodes, proposals: Sequence[Proposal]) -> dict[str, Node]:
    """Return the graph with one more layer."""
    new = {key: Node(**node) for key, node in nodes.items()}
    last = max(map(int, nodes))
    for at, proposal in enumerate(proposals, start=last + 1):
        assert all(int(key) <= last for key in proposal.prev), "an edge must lead from an earlier layer to a new node"
        key = str(at)
        new[key] = Node(content=proposal.content, start=False, end=proposal.end, next=[], prev=list(proposal.prev))
        for before in proposal.prev:
            new[before] = Node(**{**new[before], "next": [*new[before]["next"], key]})
    return new


def mark_final(nodes: Nodes, keys: Container[str]) -> dict[str, Node]:
    """Return the graph with these nodes as last steps."""
    return {key: Node(**{**node, "end": node["end"] or key in keys}) for key, node in nodes.items()}


def sufficient_paths(nodes: Nodes, sufficient: Container[str]) -> Iterator[Path]:
    """Yield every path from the source to a sink over sufficient nodes only (section 3.4), without dead ends."""
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

    return walk((SOURCE,)) if SOURCE in leading else iter(())


def shortest_and_longest(nodes: Nodes) -> list[Path]:
    """Return the first and the last sink's path in the order of a breadth-first search (section 5.1)."""
    found: dict[str, Path] = {}
    queue: list[Path] = [(SOURCE,)]
    for path in queue:
        if path[-1] not in found:
            found[path[-1]] = path
            queue += [(*path, key) for key in nodes[path[-1]]["next"]]
    ends = [path for path in found.values() if not nodes[path[-1]]["next"]]
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
