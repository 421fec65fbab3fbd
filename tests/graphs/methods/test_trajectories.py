"""Every method and each of its ablations on four example questions: its nodes, prompts and searches, as a diff."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest
from all_roles_model import ALONE, case_of
from scenes import example, resolves
from syrupy.assertion import SnapshotAssertion

from sleuth.graphs.registry import METHODS, configure
from sleuth.tools.search.retriever import Query
from sleuth.tools.settings import Profile

CHAINS = {"two hops": "q08", "four hops": "q24", "unanswerable": "q31", "false premise": "q37"}


ABLATIONS: dict[str, dict[str, dict[str, Any]]] = {
    "par-rag": {"without plan": {"plan": False}, "without review": {"review": False}},
    "crp-rag": {
        "tree": {"structure": "tree"},
        "chain": {"structure": "chain"},
        "text": {"structure": "text"},
        "without aggregation": {"aggregate": False},
        "without evaluation": {"verify": False},
        "without iteration": {"iterate": False},
    },
    "retro-rag": {
        "without answer evaluation": {"evaluate_answer": False},
        "without evidence": {"evidence": False},
        "without source evidence": {"source_evidence": False},
        "without inferential evidence": {"inferential_evidence": False},
        "without updating": {"update": False},
        "without evaluation of evidence": {"evaluate_evidence": False},
    },
    "ras": {
        "without retrieval": {"retrieve": False},
        "without planning": {"plan": False},
        "without triples": {"triples": False},
    },
    "hybrid-rag": {
        "without attributes": {"attributes": False},
        "without retrieval": {"retrieve": False},
        "without refusal": {"refuse": False, "outline": False},
        "without calculator": {"calculate": False},
        "without outline": {"outline": False},
        "without false premise": {"false_premise": False},
        "without recall": {"recall": False},
        "without graph": {"graph": False},
    },
    "ircot": {"without reader": {"reader": False}},
    "agent": {"three tools": {"tools": "three"}},
    "search-trained": {"stepsearch": {"format": "stepsearch"}},
}
VARIANTS = [
    pytest.param(method, profile, values, id=f"{method} {name}".replace(" ", "-"))
    for method in ALONE
    for name, profile, values in (
        ("whole", "default", {}),
        ("as in the paper", "paper", {}),
        *((name, "default", values) for name, values in ABLATIONS.get(method, {}).items()),
    )
]


@pytest.mark.parametrize(("method", "profile", "values"), VARIANTS)
async def test_trajectory_of_each_ablation_matches_snapshot(
    method: str, profile: Profile, values: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    seen = {kind: await _trace(method, profile, values, id) for kind, id in CHAINS.items()}
    assert "\n".join(f"{kind}\n{trace}" for kind, trace in seen.items()) == snapshot


async def _trace(method: str, profile: Profile, values: dict[str, Any], id: str) -> str:
    chain = example(id)
    case = case_of(method, chain, configure(METHODS[method], values, profile))
    verdict = await case.run(chain.question)
    assert all(resolves(citation, chain.passages) for citation in verdict["citations"] if citation["passage"])
    if not values:
        cited = {citation["passage"] for citation in verdict["citations"]}
        assert cited == ({hop.passage.id for hop in chain.hops} if verdict["status"] == "answered" else set())
    assert verdict["text"] in (chain.answer, "", "I found no answer.") or verdict["status"] == "refused"
    queries = [_told(query) for query in case.retriever.queries]
    lines = [f"nodes: {_counted(case.nodes)}", f"prompts: {_counted(case.prompts())}", *queries, verdict["status"]]
    return "\n".join(f"    {line}" for line in lines)


PUBLISHED = ("par-rag", "crp-rag", "retro-rag", "ras", "hybrid-rag")


@pytest.mark.parametrize("profile", ["default", "paper"])
@pytest.mark.parametrize("name", PUBLISHED)
async def test_longest_request_of_each_prompt_matches_snapshot(
    name: str, profile: Profile, snapshot: SnapshotAssertion
) -> None:
    chain = example("q08")
    case = case_of(name, chain, configure(METHODS[name], {}, profile))
    await case.run(chain.question)
    asked: dict[str, list[str]] = {}
    for request in case.model.requests:
        asked.setdefault(request.prompt, []).append(request.text())
    last = {prompt: max(texts, key=lambda text: (len(text), text)) for prompt, texts in sorted(asked.items())}
    shown = "\n\n".join(f"=== {prompt} ({len(asked[prompt])})\n{text}" for prompt, text in last.items())
    assert re.sub(r"(Today|Asked at): [\d-]+", r"\1: (today)", shown) == snapshot


@pytest.mark.parametrize("name", METHODS)
def test_settings_of_a_method_match_snapshot(name: str, snapshot: SnapshotAssertion) -> None:
    settings = METHODS[name].settings
    published, lines = settings().as_in_paper(), []
    for key, kind in settings.model_json_schema()["properties"].items():
        shown = {word: value for word, value in kind.items() if word not in ("title", "description")}
        lines.append(f"{key}: {shown}, in the paper {getattr(published, key)!r}")
    assert "\n".join(lines) == snapshot


SIDE_BY_SIDE = {
    *("classifier", "reasoner", "evaluator/relevance", "evaluator/attribution"),
    *("evaluator/consistency", "evaluator/declarative"),
}
"""Roles and prompts that come in any order: they are counted together."""


def _counted(names: Iterable[str]) -> str:
    """Names in order; several of one kind in a row are counted."""
    runs = [Counter(same) for _, same in groupby(names, key=_kind)]
    each = [(name, count) for run in runs for name, count in sorted(run.items())]
    return ", ".join(name if count == 1 else f"{name} x{count}" for name, count in each)


def _kind(name: str) -> str:
    return next(("side by side" for each in SIDE_BY_SIDE if name.startswith(each)), name)


def _told(query: Query) -> str:
    """Return a query as a line."""
    names = f" [{', '.join(query.entities)}]" if query.entities else ""
    seen = f" (not {', '.join(sorted(query.seen))})" if query.seen else ""
    return f"{query.mode} {query.k}{' hop' if query.hop else ''}: {query.text}{names}{seen}"


@pytest.mark.parametrize("name", ALONE)
async def test_question_may_exceed_reply_limit(name: str) -> None:
    chain = example("q08")
    asked = replace(chain, question=f"{'Think of the ferry and its yard. ' * 30}{chain.question}")
    assert (await case_of(name, asked).run(asked.question))["status"]
