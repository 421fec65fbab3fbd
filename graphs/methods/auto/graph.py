"""auto: start with a cheap method, check its answer, and continue with a stronger one if the answer is rejected.

    plan -> act -> verify -> (plan -> act -> verify)* -> answer

Each sub-run is an ordinary run of another method in a thread of its own (`graphs/runs/execution.py`). Its findings are
passed to the next one; a rejected answer is not. If no answer is accepted, the first one is returned, marked as weakly
supported; one without citations never is. With the answer to a question about the whole
collection, such as "How many …?", a survey of all documents is offered (`ask_all`): it takes many calls, so a person
decides. If `fast`, the reader answers first: without a model call, and only what is well supported. The demo model
answers what the reader refuses: on 145 questions no method with it was better than the reader alone.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from langgraph.graph import END, START, StateGraph
from pydantic import AfterValidator, BeforeValidator, Field

from sleuth.agents.formatting import Source
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.roles import inputs, judging
from sleuth.graphs.core.answer import Note, Subrun, Verdict, evidence_in, make_verdict, refusal_text
from sleuth.graphs.core.context import CheckedSettings, CitedSettings, Context, parse_json
from sleuth.graphs.core.method import MODELLESS_METHOD, Method, summarize_update
from sleuth.graphs.core.node import Call, check_budget, new_graph, node
from sleuth.graphs.core.state import Keyed, Question, RunState, Update
from sleuth.graphs.core.subrun import new_subrun, prefix_nodes, run_subrun, verdict_of, with_result
from sleuth.graphs.delegation import check_asked
from sleuth.graphs.evidence.check import GOOD_SUPPORT, least_support, open_questions
from sleuth.graphs.evidence.outcomes import yes_probability
from sleuth.graphs.registry import METHODS
from sleuth.tools.search import DocumentLister
from sleuth.tools.search.retriever import list_all
from sleuth.tools.text.normalization import comparison_key
from sleuth.tools.text.tokenization import name_key

Notes = Mapping[str, Note]


def _order(text: str) -> str:
    names = [check_asked(name.strip()) for name in text.split(",")]
    if len(names) > len(set(names)):
        raise ValueError("each method may be named once")
    return ",".join(names)


class Settings(CheckedSettings):
    """Settings of `--set`."""

    renamed: ClassVar = {"hop_settings": "settings_by_method"}
    order: Annotated[str, AfterValidator(_order)] = Field(default="plain-rag,agent", description="methods in turn")
    fast: bool | None = Field(
        default=None,
        description="first accept what the reader supports well, without a model call (default: with the demo model, "
        "all that the reader answers)",
    )
    min_citations: int = Field(default=1, ge=0, le=20, description="citations that an answer needs to be accepted")
    min_confidence: float = Field(
        default=0.5, ge=0, lt=1, description="an answer is accepted above this P(yes, it holds); 0: not asked"
    )
    settings_by_method: Annotated[dict[str, dict[str, Any]], BeforeValidator(parse_json)] = Field(
        default={"agent": {"max_searches": 3}},
        description='settings of the methods, as JSON: {"par-rag": {"coarse_k": 5}}',
    )
    survey_documents: int = Field(
        default=50, ge=0, description="the most documents for which a survey of all is offered; 0: none is"
    )

    def nested(self) -> dict[str, dict[str, Any]]:
        """Return `settings_by_method`."""
        return self.settings_by_method


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of `auto`. Sub-runs are keyed by their number as text; calls include theirs, as `method/node`."""

    order: list[str] = field(default_factory=list)
    """The methods in turn."""
    hops: Annotated[dict[str, Subrun], Keyed] = field(default_factory=dict)
    """The sub-runs so far, with their results."""
    ask_all: int | None = None
    """The number of documents if the question is about all of them, else 0; None if that is not known yet."""


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """Choose the next method of the order."""
    order = state.order or call.settings.order.split(",")
    is_fast = call.context.demo if call.settings.fast is None else call.settings.fast
    if not state.order and is_fast and call.context.checker and MODELLESS_METHOD not in order:
        order = [MODELLESS_METHOD, *order]
    ask_all = await _documents_in_question(state, call) if state.ask_all is None else state.ask_all
    method, update = order[len(state.hops)], {"order": order, "ask_all": ask_all}
    if METHODS[method].needs_model and not call.affords():  # at least one call of the sub-run
        return {**update, "halted": True}
    why = "first in the order"
    if state.hops:
        _, before = _latest(state)
        why = f"{before['method']} was not accepted: {before['doubt']}"
    return {**update, "hops": {str(len(state.hops) + 1): new_subrun(method, why)}}


@node
async def act(state: State, call: Call[Settings]) -> Update:
    """Let the method answer the question in its own thread, from the known notes and with the rest of the budget."""
    number, subrun = _latest(state)
    inherited = inherited_notes(state.notes, state.hops.values())
    kind = METHODS[subrun["method"]].settings
    checked = {*CheckedSettings.model_fields} & kind.model_fields.keys() if issubclass(kind, CitedSettings) else set()
    for_all = call.settings.model_dump(include=checked, exclude_none=True)
    values = {**for_all, **call.settings.settings_by_method.get(subrun["method"], {})}
    end = await run_subrun(call, method=subrun["method"], number=int(number), notes=inherited, values=values)
    handed = [(note["question"], note["finding"]) for note in inherited.values()]
    new = {
        f"{subrun['method']} {key}": note
        for key, note in end.notes.items()
        if (note["question"], note["finding"]) not in handed
    }
    result = with_result(subrun, end, list(new))
    if "support" in result and least_support(call.settings, call.context) > 0:  # what it supports too little is refused
        result["confidence"] = result["support"]["score"]
    warnings = [f"{subrun['method']}: {warning}" for warning in end.warnings]
    calls = prefix_nodes(subrun["method"], end)
    return {"hops": {number: result}, "notes": new, "calls": calls, "warnings": warnings}


@node
async def verify(state: State, call: Call[Settings]) -> Update:
    """Accept or reject the answer: it must have citations, which support it well or confirm it to a reader.

    If the last method's answer is not confirmed either, the first answer with citations is returned.
    """
    number, subrun = _latest(state)
    if subrun["status"] == "out_of_budget" or (subrun["status"] != "answered" and not _more(state)):
        return {}
    confidence, doubt = await _judge(subrun, state, call)
    checked = subrun | {"confidence": confidence}
    if not doubt:
        return {"hops": {number: checked}}
    if not _more(state):
        checked["doubt"] = doubt
        return {"hops": _keep_first({**state.hops, number: checked}, call.settings.min_citations)}
    # A rejected answer is not passed on: the notes that answer the question itself are removed.
    own = {key: state.notes[key] for key in subrun["notes"]}
    asked = comparison_key(state.question)
    answering = [key for key, note in own.items() if note["finding"] and comparison_key(note["question"]) == asked]
    others = [key for key in own if key not in answering]
    checked = checked | {"doubt": doubt, "notes": others}
    return {"hops": {number: checked}, "notes": dict.fromkeys(answering)}


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """Return the last method's answer or refusal, and warn of the rejected answers before it."""
    answers = [subrun for subrun in state.hops.values() if subrun["status"] == "answered"]
    doubted = [subrun for subrun in answers if subrun["doubt"] and METHODS[subrun["method"]].needs_model]
    missing = open_questions(state.question, state.notes.values())
    verdict = best_verdict(list(state.hops.values()), missing, cut_short=state.halted)
    warnings = [
        f"{subrun['method']} had answered {subrun['text']!r}, not accepted: {subrun['doubt']}." for subrun in doubted
    ]
    if state.ask_all:
        verdict = verdict | {"ask_all": state.ask_all}
    return {"verdict": verdict, "warnings": warnings}


# Routers


def escalate(state: State) -> Literal["plan", "answer"]:
    """Route to the next method if the answer was rejected."""
    return "plan" if _more(state) and _latest(state)[1]["doubt"] and not state.halted else "answer"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, plan, act, verify, answer)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", check_budget, {"left": "act", "spent": "answer"})
    graph.add_edge("act", "verify")
    graph.add_conditional_edges("verify", escalate)
    graph.add_edge("answer", END)
    return graph


# What the nodes above are made of


def _latest(state: State) -> tuple[str, Subrun]:
    return list(state.hops.items())[-1]


def _more(state: State) -> bool:
    """Return whether another method is left."""
    return len(state.hops) < len(state.order)


_MAY_ASK_ALL = re.compile(
    r"\b(?:how many|how much|list|all|every|each|total|which \w+s"
    r"|wie ?viele?|welche|alle|jede[rs]?|cu[aá]nt[ao]s?|cu[aá]les|tod[ao]s|combien|quel(?:le)?s|tou(?:te)?s)\b",
    re.IGNORECASE,
)
"""Words without which a question is not about every document: the model is asked about the others only."""


async def _documents_in_question(state: State, call: Call[Settings]) -> int:
    """Return the number of documents if the question is about all of them, and if they are few enough; else 0."""
    reader, most = call.context.retriever, call.settings.survey_documents
    is_asked = most and _MAY_ASK_ALL.search(state.question) and call.affords(2) and not call.context.demo
    if not (is_asked and isinstance(reader, DocumentLister)):
        return 0
    documents = len(await list_all(reader))
    if not 1 < documents <= most:
        return 0
    request = inputs.QuestionInput(question=state.question)
    chance = await yes_probability(call.model, judging.ASKS_ALL, request, otherwise=0.0, loss="No survey is offered.")
    return documents if chance > 0.5 else 0


async def _judge(subrun: Subrun, state: State, call: Call[Settings]) -> tuple[float | None, str]:
    """Return the probability that the answer holds, if it is known, and why it is rejected, if it is."""
    least, support, confidence = call.settings.min_confidence, subrun.get("support"), subrun["confidence"]
    doubt = rejection_reason(subrun, call.settings.min_citations)
    is_own_reading = not METHODS[subrun["method"]].needs_model and not call.context.demo
    if not doubt and is_own_reading and support and support.get("weak"):
        doubt = f"its support is {support['score']:.2f}, below {GOOD_SUPPORT}"
    if doubt or confidence is not None or not least:
        return confidence, doubt
    if support and not support.get("weak"):
        return support["score"], ""
    if not _more(state) and not support:  # it cannot be compared
        return None, ""
    if not _more(state) and not call.affords():
        return None, "the budget has no room to ask whether it holds"
    call.require()
    confidence = await support_probability(call.model, state.question, subrun)
    return confidence, "" if confidence > least else f"P(it holds) is {confidence:.2f}, not above {least:g}"


def _keep_first(subruns: Mapping[str, Subrun], min_citations: int) -> dict[str, Subrun]:
    """Accept the first answer with citations in place of the last one, which was not confirmed either; none if no
    answer has any.

    On 60 questions with a model of 0.5 billion parameters, F1 was 38.8 so, 33.6 with the answer of most support, and
    25.1 with the last one.
    """
    number, last = list(subruns.items())[-1]
    first = next((key for key, each in subruns.items() if not rejection_reason(each, min_citations)), None)
    if first is None:
        return {number: last}
    if name_key(subruns[first]["text"]) == name_key(last["text"]):
        return {number: last | {"doubt": ""}}
    doubt = f"it is not confirmed either, and {subruns[first]['method']} answered first"
    return {first: subruns[first] | {"doubt": ""}, number: last | {"doubt": doubt}}


def inherited_notes(notes: Notes, subruns: Iterable[Subrun]) -> dict[str, Note]:
    """Return the notes for the next method: those given to the run, and findings of sub-runs that cite a passage."""
    subrun_keys = {key for subrun in subruns for key in subrun["notes"]}
    return {
        key: note for key, note in notes.items() if key not in subrun_keys or (note["finding"] and note["passages"])
    }


def rejection_reason(subrun: Subrun, min_citations: int) -> str:
    """Return why an answer is rejected without asking the model; empty if it may be accepted."""
    if subrun["status"] != "answered":
        return f"it ended as {subrun['status'].replace('_', ' ')}"
    if (held := len(evidence_in(subrun["citations"]))) < min_citations:
        return f"{held or 'none'} of its citations {'holds' if held == 1 else 'hold'}, {min_citations} must"
    return ""


async def support_probability(model: ModelCaller, question: str, subrun: Subrun) -> float:
    """Return P(yes, the cited passages support the answer); 0 if the reply cannot be parsed."""
    quotes = tuple(Source(title=each["title"], text=each["quote"]) for each in evidence_in(subrun["citations"]))
    request = judging.SupportInput(question=question, answer=subrun["text"], sources=quotes)
    loss = f"The answer of {subrun['method']} counts as not confirmed."
    return await yes_probability(model, judging.SUPPORT, request, otherwise=0.0, loss=loss)


def best_verdict(subruns: Sequence[Subrun], missing: Sequence[str], *, cut_short: bool) -> Verdict:
    """Return the accepted verdict, by default the last one, or the best answer so far if the budget ran out; a refusal
    lists what is missing.
    """
    if not subruns:
        return make_verdict("out_of_budget", "", [])
    accepted = [subrun for subrun in subruns if subrun["status"] == "answered" and not subrun["doubt"]]
    last = (accepted or subruns)[-1]
    if last["status"] == "answered" and last["doubt"] and not cut_short:
        return make_verdict("unknown", _refusal(subruns, missing), [])
    status = "out_of_budget" if cut_short or last["status"] == "queued" else last["status"]
    if status == "out_of_budget":
        best = next((subrun for subrun in reversed(subruns) if subrun["status"] == "answered"), last)
        return Verdict(status=status, text=best["text"], citations=best["citations"])
    if status == "unknown":
        return verdict_of(last) | {"text": _refusal(subruns, missing)}
    return verdict_of(last)


def _refusal(subruns: Sequence[Subrun], missing: Sequence[str]) -> str:
    """Return the text of a run without an answer, with the nearest sentence if a sub-run has named one."""
    text = refusal_text("unknown", missing)
    return max((text, *(each["text"] for each in subruns if each["text"].startswith(f"{text} "))), key=len)


def summarize(update: Mapping[str, Any]) -> list[str]:
    """Return lines that describe the update of a node."""
    subruns = [_summarize_subrun(subrun) for subrun in (update.get("hops") or {}).values()]
    return [*subruns, *summarize_update(update)]


def _summarize_subrun(subrun: Subrun) -> str:
    if subrun["doubt"]:
        return f"{subrun['method']} is not accepted: {subrun['doubt']}"
    if subrun["confidence"] is not None:
        how = "kept, with weak support" if subrun.get("support", {}).get("weak") else "accepted"
        return f"{subrun['method']} is {how}: P(it holds) is {subrun['confidence']:.2f}"
    ended = f"{subrun['method']}: {subrun['status'].replace('_', ' ')}, in thread {subrun['thread']}"
    return ended if subrun["thread"] else f"{subrun['method']}: {subrun['why']}"


METHOD = Method(
    name="auto",
    line="start with a cheap method, check its answer, and continue with a stronger one if the answer is rejected",
    paper="none: our way of choosing among the methods above",
    when="you do not know how hard the question is, and an easy one should stay cheap",
    calls="2 to 8; 2 on two hops",
    graph=graph,
    settings=Settings,
    delegates=True,
    summarize_update=summarize,
)
