"""When `auto` is content with an answer, what it hands on to the next method, and how it ends."""

from collections.abc import Iterable, Mapping, Sequence

from sleuth.agents.formatting import Source
from sleuth.agents.model_calls import Desk, first_token_probability
from sleuth.agents.roles.judging import evaluator
from sleuth.graphs.core import Citation, Hop, Note, Verdict, cost_of
from sleuth.graphs.evidence import conclude
from sleuth.graphs.methods.par_rag import Plan
from sleuth.tools.errors import BadReply
from sleuth.tools.text import comparison_key

Notes = Mapping[str, Note]


def new_hop(method: str, why: str) -> Hop:
    """A method's turn before it has begun."""
    return Hop(
        method=method,
        why=why,
        thread="",
        status="new",
        text="",
        citations=[],
        confidence=None,
        doubt="",
        notes=[],
        cost=cost_of({}),
    )


def independent(parts: Plan) -> bool:
    """Whether a question has several parts to look up, none of which needs the answer of another step."""
    looked_up = [step for step in parts.values() if step["action"] == "Retrieve"]
    return len(looked_up) > 1 and not any(step["needs"] for step in looked_up)


def handed_over(notes: Notes, hops: Iterable[Hop]) -> dict[str, Note]:
    """The notes that the next method starts from: what the run was given, and what hops have found in some passage."""
    found = {key for hop in hops for key in hop["notes"]}
    return {key: note for key, note in notes.items() if key not in found or (note["finding"] and note["passages"])}


def answers_to(question: str, notes: Notes, keys: Iterable[str]) -> list[str]:
    """The notes among these that answer the question itself: with an answer in doubt they may not be handed on."""
    return [
        key
        for key in keys
        if notes[key]["finding"] and comparison_key(notes[key]["question"]) == comparison_key(question)
    ]


def doubt_about(hop: Hop, min_citations: int) -> str:
    """Why an answer is not accepted, as far as that can be told without asking; empty where it may be."""
    if hop["status"] != "answered":
        return f"it ended as {hop['status'].replace('_', ' ')}"
    if (held := len(_evidence(hop))) < min_citations:
        return f"{held or 'none'} of its citations {'holds' if held == 1 else 'hold'}, {min_citations} must"
    return ""


def _evidence(hop: Hop) -> list[Citation]:
    """What an answer stands on; that a model recalls it is no evidence."""
    return [each for each in hop["citations"] if each.get("kind") != "model"]


async def support(asking: Desk, question: str, hop: Hop) -> float:
    """P(yes, the answer holds by what it cites), off the first token of a yes or no.

    Where the server gives no log-probabilities the word itself counts as certain, with a warning.
    """
    quotes = tuple(Source(title=each["title"], text=each["quote"]) for each in _evidence(hop))
    given = evaluator.SupportInput(question=question, answer=hop["text"], sources=quotes)
    try:
        said, reply = await asking.consult(evaluator.SUPPORT, given)
    except BadReply as error:
        asking.warn(f"{error} The answer of {hop['method']} counts as not confirmed.")
        return 0.0
    if reply["logprobs"] is None:
        asking.warn("no log-probabilities: whether an answer holds is a plain yes or no")
        return float(comparison_key(said).startswith("yes"))
    probability, warning = first_token_probability(reply)
    if warning:
        asking.warn(f"{evaluator.SUPPORT.prompt}: {warning}")
    return probability


def concluded(hops: Sequence[Hop], notes: Notes, *, cut_short: bool) -> Verdict:
    """What the last method says; out of budget, the best answer so far. A refusal lists what nobody has found."""
    if not hops:
        return conclude("out_of_budget", "", [])
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
