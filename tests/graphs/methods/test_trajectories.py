"""Every method and each of its ablations on four example questions: its nodes, prompts and searches, as a diff."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import pytest
from all_roles_model import case_of
from scenes import example, resolves
from syrupy.assertion import SnapshotAssertion

from sleuth.graphs.registry import METHODS, configure
from sleuth.tools.search.retriever import Query
from sleuth.tools.settings import Profile

CHAINS = {"two hops": "q08", "four hops": "q24", "unanswerable": "q31", "false premise": "q37"}


@dataclass(frozen=True)
class Variant:
    """A method under some settings, and the prompts that these rule out."""

    method: str
    name: str
    values: dict[str, Any] = field(default_factory=dict)
    without: frozenset[str] = frozenset()


def variants(method: str, **changed: tuple[dict[str, Any], Iterable[str]]) -> list[Variant]:
    own = [Variant(method, name.replace("_", " "), values, frozenset(out)) for name, (values, out) in changed.items()]
    return [Variant(method, "whole"), Variant(method, "as in the paper"), *own]


SCORES = {"evaluator/evidence", "evaluator/relevance", "evaluator/attribution"}
EXTRACT, PLANS = "extractor/extract", {"planner/begin", "planner/next_with_finding"}

VARIANTS = [
    *variants("plain-rag"),
    *variants(
        "par-rag",
        without_plan=({"plan": False}, ["planner/plan", "refiner/refine"]),
        without_review=({"review": False}, ["reviewer/review"]),
    ),
    *variants(
        "crp-rag",
        tree=({"structure": "tree"}, ["fuser/fuse"]),
        chain=({"structure": "chain"}, ["fuser/fuse"]),
        text=({"structure": "text"}, ["fuser/fuse", "expander/expand"]),
        without_aggregation=({"aggregate": False}, ["aggregator/aggregate"]),
        without_evaluation=({"verify": False}, ["verifier/verify"]),
        without_iteration=({"iterate": False}, ["integrator/step"]),
    ),
    *variants(
        "retro-rag",
        without_answer_evaluation=(
            {"evaluate_answer": False},
            ["reasoner/monitor", "evaluator/consistency", "evaluator/declarative"],
        ),
        without_evidence=({"evidence": False}, ["reasoner/reason", "detective/infer", *SCORES]),
        without_source_evidence=({"source_evidence": False}, []),
        without_inferential_evidence=({"inferential_evidence": False}, ["detective/infer"]),
        without_updating=({"update": False}, []),
        without_evaluation_of_evidence=({"evaluate_evidence": False}, SCORES),
    ),
    *variants(
        "ras",
        without_retrieval=({"retrieve": False}, [EXTRACT, *PLANS]),
        without_planning=({"plan": False}, PLANS),
        without_triples=({"triples": False}, [EXTRACT]),
    ),
    *variants(
        "hybrid-rag",
        without_attributes=({"attributes": False}, ["classifier/domain", "classifier/dynamic"]),
        without_retrieval=({"retrieve": False}, ["calculator/express"]),
        without_refusal=({"refuse": False, "outline": False}, ["resolver/careful"]),
        without_calculator=({"calculate": False}, ["calculator/express"]),
        without_outline=({"outline": False}, ["resolver/reason", "resolver/reason_and_doubt"]),
        without_false_premise=({"false_premise": False}, ["resolver/reason_and_doubt"]),
        without_recall=({"recall": False}, ["recaller/recall"]),
        without_graph=({"graph": False}, ["querier/entities"]),
    ),
    *variants("closed-book"),
    *variants("iter-retgen"),
    *variants("self-ask"),
    *variants("ircot", without_reader=({"reader": False}, ["reasoner/reason"])),
    *variants("agent", three_tools=({"tools": "three"}, ["actor/act"])),
    *variants(
        "search-trained",
        stepsearch=({"format": "stepsearch"}, ["searcher/search_r1"]),
    ),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda it: f"{it.method} {it.name}".replace(" ", "-"))
async def test_trajectory_of_each_ablation_matches_snapshot(variant: Variant, snapshot: SnapshotAssertion) -> None:
    seen = {kind: await _trace(variant, id) for kind, id in CHAINS.items()}
    assert "\n".join(f"{kind}\n{trace}" for kind, trace in seen.items()) == snapshot


async def _trace(variant: Variant, id: str) -> str:
    method, chain = METHODS[variant.method], example(id)
    settings = configure(method, variant.values, "paper" if variant.name == "as in the paper" else "default")
    case = case_of(variant.method, chain, settings)
    verdict = await case.run(chain.question)
    assert all(resolves(citation, chain.passages) for citation in verdict["citations"] if citation["passage"])
    assert not variant.without & set(case.prompts())
    if not variant.values:
        cited = {citation["passage"] for citation in verdict["citations"]}
        assert cited == ({hop.passage.id for hop in chain.hops} if verdict["status"] == "answered" else set())
    assert verdict["text"] in (chain.answer, "") or verdict["status"] == "refused"
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


@pytest.mark.parametrize("name", [name for name in METHODS if name != "auto"])
async def test_question_may_exceed_reply_limit(name: str) -> None:
    chain = example("q08")
    asked = replace(chain, question=f"{'Think of the ferry and its yard. ' * 30}{chain.question}")
    assert (await case_of(name, asked).run(asked.question))["status"]
