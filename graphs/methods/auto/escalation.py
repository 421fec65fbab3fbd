"""Acceptance of an answer by `auto`, the notes for the next method, and the final verdict."""

from collections.abc import Iterable, Mapping, Sequence

from sleuth.agents.formatting import Source
from sleuth.agents.model_calls import ModelCaller, first_token_probability
from sleuth.agents.roles import judging
from sleuth.graphs.core import Citation, Note, Subrun, Verdict
from sleuth.graphs.evidence import make_verdict
from sleuth.graphs.methods.par_rag import Plan
from sleuth.tools.errors import BadReply
from sleuth.tools.text import comparison_key

Notes = Mapping[str, Note]


def has_independent_parts(parts: Plan) -> bool:
    """Return whether a question has several parts to look up, none of which needs the answer of another step."""
    looked_up = [step for step in parts.values() if step["action"] == "Retrieve"]
    return len(looked_up) > 1 and not any(step["needs"] for step in looked_up)


def inherited_notes(notes: Notes, hops: Iterable[Subrun]) -> dict[str, Note]:
    """Return the notes for the next method: those given to the run, and findings of sub-runs that cite a passage."""
    found = {key for hop in hops for key in hop["notes"]}
    return {key: note for key, note in notes.items() if key not in found or (note["finding"] and note["passages"])}


def final_answers(question: str, notes: Notes, keys: Iterable[str]) -> list[str]:
    """Return the keys of notes that answer the question itself, which a rejected answer must not pass on."""
    return [
        key
        for key in keys
        if notes[key]["finding"] and comparison_key(notes[key]["question"]) == comparison_key(question)
    ]


def rejection_reason(hop: Subrun, min_citations: int) -> str:
    """Return why an answer is rejected without asking the model; empty if it may be accepted."""
    if hop["status"] != "answered":
        return f"it ended as {hop['status'].replace('_', ' ')}"
    if (held := len(_evidence(hop))) < min_citations:
        return f"{held or 'none'} of its citations {'holds' if held == 1 else 'hold'}, {min_citations} must"
    return ""


def _evidence(hop: Subrun) -> list[Citation]:
    """Return the evidence of an answer; a model's own recollection is not evidence."""
    return [each for each in hop["citations"] if each.get("kind") != "model"]


async def support_probability(model: ModelCaller, question: str, hop: Subrun) -> float:
    """Return P(yes, the cited passages support the answer), from the first token of a yes or no.

    If the server gives no log-probabilities the word itself counts as certain, with a warning.
    """
    quotes = tuple(Source(title=each["title"], text=each["quote"]) for each in _evidence(hop))
    given = judging.SupportInput(question=question, answer=hop["text"], sources=quotes)
    try:
        said, reply = await model.ask_with_reply(judging.SUPPORT, given)
    except BadReply as error:
        model.warn(f"{error} The answer of {hop['method']} counts as not confirmed.")
        return 0.0
    if reply["logprobs"] is None:
        model.warn("no log-probabilities: whether an answer holds is a plain yes or no")
        return float(comparison_key(said).startswith("yes"))
    probability, warning = first_token_probability(reply)
    if warning:
        model.warn(f"{judging.SUPPORT.prompt}: {warning}")
    return probability


def best_verdict(hops: Sequence[Subrun], notes: Notes, *, cut_short: bool) -> Verdict:
    """Return the last method's verdict, or the best answer so far if the budget ran out; a refusal lists what is
    missing.
    """
    if not hops:
        return make_verdict("out_of_budget", "", [])
    last = hops[-1]
    status = "out_of_budget" if cut_short or last["status"] == "new" else last["status"]
    if status == "out_of_budget":
        best = next((hop for hop in reversed(hops) if hop["status"] == "answered"), last)
        return Verdict(status=status, text=best["text"], citations=best["citations"])
    return Verdict(status=status, text=last["text"] or _missing(notes), citations=last["citations"])


def _missing(notes: Notes) -> str:
    found = {comparison_key(note["question"]) for note in notes.values() if note["finding"]}
    open_ones = [note["question"] for note in notes.values() if comparison_key(note["question"]) not in found]
    lines = [f"- {question}" for question in dict.fromkeys(open_ones)]
    return "\n".join(["No method has found the answer. What is missing:", *lines]) if lines else ""
