"""Evidence of CRP-RAG's steps, its sufficiency, and answers along the paths where it suffices (sections 3.3, 3.4)."""

import asyncio
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from typing_extensions import TypedDict

from sleuth.agents.formatting import Source
from sleuth.agents.model import perplexity
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.roles import reading, reasoning
from sleuth.agents.roles.inputs import SourcesInput
from sleuth.agents.roles.judging import VERIFY, resampled_verify
from sleuth.graphs.core.answer import Citation, Note, Threshold, refusal_text
from sleuth.graphs.evidence.citations import find_support, verify_quotes
from sleuth.graphs.evidence.outcomes import as_steps, make_note, stated_answer
from sleuth.graphs.evidence.retrieval import as_sources
from sleuth.graphs.evidence.text_spans import find_sentence, strip_marks
from sleuth.graphs.methods.crp_rag.reasoning_graph import SOURCE, Nodes, Path, path_steps
from sleuth.tools.errors import BadReply
from sleuth.tools.text.normalization import comparison_key
from sleuth.tools.types import Passage


class Knowledge(TypedDict):
    """A summary of a node's passages, with citations."""

    text: str
    citations: list[Citation]


@dataclass(frozen=True, kw_only=True)
class StepEvidence:
    """Evidence to answer a step from: sources to read, and what the answer may cite.

    `note` is an inherited answer.
    """

    sources: tuple[Source, ...] = ()
    citations: Sequence[Citation] = ()
    passages: Sequence[Passage] = ()
    note: Note | None = None


async def summarize_passages(
    step: str, passages: Sequence[Passage], model: ModelCaller, *, detailed: bool
) -> Knowledge:
    """Summarize the passages of a step (equation 8)."""
    request = reading.AggregateInput(step=step, sources=as_sources(passages))
    loss = f"Nothing is known about {step!r}."
    role = reading.AGGREGATE_IN_DETAIL if detailed else reading.AGGREGATE
    reply = await model.ask_or(role, request, reading.Knowledge(), loss)
    text = strip_marks(reply.knowledge)
    return Knowledge(text=text, citations=verify_quotes(model, text, reply.citations, passages))


# Ours: notes of another run


def inherited_notes(nodes: Nodes, notes: Mapping[str, Note]) -> dict[str, Note]:
    """Return the notes of another run that answer a node's question, word for word, by node."""
    answers = {comparison_key(note["question"]): note for note in notes.values() if note["finding"]}
    asked = {key: comparison_key(node["content"]) for key, node in nodes.items()}
    return {key: answers[text] for key, text in asked.items() if text in answers}


def without_answer(nodes: Nodes, notes: Mapping[str, Note]) -> list[str]:
    """Return the steps after the question that no inherited note answers."""
    inherited = inherited_notes(nodes, notes)
    return [key for key in nodes if key != SOURCE and key not in inherited]


def use_notes(by_step: Mapping[str, StepEvidence], nodes: Nodes, notes: Mapping[str, Note]) -> dict[str, StepEvidence]:
    """Return the evidence with inherited notes: for a step that one answers that note alone, for the question all."""
    inherited = inherited_notes(nodes, notes)
    answered = {key: StepEvidence(sources=_as_sources([note]), note=note) for key, note in inherited.items()}
    used = {key: answered.get(key, evidence) for key, evidence in by_step.items()}
    if SOURCE in used and SOURCE not in inherited:
        used[SOURCE] = replace(used[SOURCE], sources=(*_as_sources(notes.values()), *used[SOURCE].sources))
    return used


def _as_sources(notes: Iterable[Note]) -> tuple[Source, ...]:
    return tuple(Source(title=note["question"], text=note["finding"]) for note in notes if note["finding"])


# Sufficiency: the certainty of an answer from the knowledge alone


class Verification(TypedDict):
    """The answer from a step's knowledge alone, its perplexity (None: not measured), and if the knowledge suffices."""

    answer: str
    perplexity: float | None
    sufficient: bool


UNFITTED = Threshold(value=2.0, by="the default; `sleuth calibrate` fits one for the model")
"""The perplexity threshold for models without a fitted one; the paper names none."""


async def measure_perplexity(request: SourcesInput, threshold: float, model: ModelCaller) -> Verification:
    """Answer a step; its knowledge suffices if the answer's perplexity is below the threshold (equations 9 and 10)."""
    try:
        answer, reply = await model.ask_with_reply(VERIFY, request)
    except BadReply as error:
        model.warn(f"{error} The knowledge about {request.question!r} counts as insufficient.")
        return Verification(answer="", perplexity=None, sufficient=False)
    measured = perplexity(reply)
    sufficient = measured is not None and measured < threshold
    return Verification(answer=strip_marks(answer), perplexity=measured, sufficient=sufficient)


async def self_consistency(request: SourcesInput, answer: str, samples: int, model: ModelCaller) -> Verification:
    """Compare an answer with several further ones: the fallback for servers without log-probabilities."""
    asks = (model.ask_or(resampled_verify(), request, "", "It counts as another answer.") for _ in range(samples))
    every = [comparison_key(strip_marks(each)).rstrip(".") for each in (answer, *await asyncio.gather(*asks))]
    same = every.count(every[0]) - 1
    return Verification(answer=answer, perplexity=None, sufficient=same * 2 > samples)


def sufficient_steps(nodes: Nodes, verified: Mapping[str, Verification], notes: Mapping[str, Note]) -> set[str]:
    """Return the steps with sufficient knowledge, or with an inherited note; the question needs none in a graph."""
    sufficient = {key for key, checked in verified.items() if checked["sufficient"]}
    needless = {SOURCE} if len(nodes) > 1 else set()
    return sufficient | needless | inherited_notes(nodes, notes).keys()


def most_certain(paths: Sequence[Path], verified: Mapping[str, Verification]) -> list[Path]:
    """Return paths by the mean perplexity of their steps' answers, lowest first; unmeasured steps do not count."""

    def mean(path: Path) -> float:
        measured = [verified[key]["perplexity"] for key in path_steps(path) if key in verified]
        values = [each for each in measured if each is not None]
        return sum(values) / len(values) if values else 1.0

    return sorted(paths, key=mean)


def describe_missing(nodes: Nodes, sufficient: Container[str], verified: Mapping[str, Verification]) -> str:
    """Return why no path can be answered, node by node, so that a person can add documents."""
    missing = []
    for key, node in nodes.items():
        if key not in sufficient:
            checked = verified.get(key)
            why = "no clear answer in what was found" if checked else "nothing was found about it"
            if checked and checked["perplexity"] is not None:
                why = f"no sure answer in what was found: its perplexity is {checked['perplexity']:.1f}"
            missing.append(f"{node['content']} ({why})")
    return refusal_text("refused", missing)


# Answers along paths

Results = Mapping[Path, Note]


async def integrate(question: str, paths: Sequence[Path], results: Results, model: ModelCaller) -> str:
    """Combine the answers of several paths (equation 13)."""
    answers = tuple(
        reasoning.PathAnswer(answer=results[path]["finding"], steps=as_steps(notes_on_path(path, results)))
        for path in paths
    )
    request = reasoning.IntegrateInput(question=question, answers=answers)
    first = reasoning.Integrated(answer=answers[0].answer)
    reply = await model.ask_or(reasoning.INTEGRATE, request, first, "The first path's answer is taken.")
    return stated_answer(reply.answer, question)


def notes_of(results: Results, nodes: Nodes, notes: Mapping[str, Note]) -> dict[str, Note | None]:
    """Return the findings by path, without inherited ones; an inherited note with the same key gets a new key."""
    inherited = inherited_notes(nodes, notes)
    own = {path_label(path): note for path, note in results.items() if path[-1] not in inherited}
    return {**{f"known {key}": notes[key] for key in own if key in notes}, **own}


def notes_on_path(path: Path, results: Results) -> list[Note]:
    """Return the results on a path, in order."""
    beginnings = (path[:length] for length in range(1, len(path) + 1))
    return [results[beginning] for beginning in beginnings if beginning in results]


def path_label(path: Path) -> str:
    """Return the name of a path in messages, also the key of its note."""
    return "path " + ">".join(path)


def find_contradictions(nodes: Nodes, results: Results) -> list[str]:
    """Return a line for each step that several paths share with results that exclude each other in words."""
    by_node: dict[str, dict[str, list[str]]] = {}
    for path, note in results.items():
        if note["finding"]:
            others, result = by_node.setdefault(path[-1], {}), comparison_key(note["finding"].rstrip("."))
            # One finding may contain the other, as "in 1868" and "1868": they agree.
            same = (other for other in others if f" {other} " in f" {result} " or f" {result} " in f" {other} ")
            others.setdefault(next(same, result), []).append(f"{note['finding']!r} by {path_label(path)}")
    return [
        f"Paths contradict each other at step {key}, {nodes[key]['content']!r}: "
        + ", ".join(paths[0] for paths in results_of_step.values())
        for key, results_of_step in by_node.items()
        if len(results_of_step) > 1
    ]


def step_result(step: str, answer: str, backing: Sequence[StepEvidence]) -> Note:
    """Return a result with the citations that contain it, or those of its knowledge if no text contains it verbatim."""
    cited = [citation for each in backing for citation in each.citations]
    showing = [citation for citation in cited if find_sentence(answer, citation["quote"])]
    passages = [passage for each in backing for passage in each.passages]
    return make_note(step, answer, (showing or find_support(answer, passages) or cited) if answer else [])
