"""Simulated roles that judge answers, and their log-probabilities."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from sleuth.agents.model import Sampling, TokenLogprob
from sleuth.agents.roles import judging
from sleuth.graphs.evidence.outcomes import stated_answer
from sleuth.tools.text.normalization import comparison_key
from training.simulation.answering import find_answer
from training.simulation.gold import WHOLE
from training.simulation.request_view import RequestView
from training.simulation.wording import mentions


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedReply:
    """A text, the perplexity of its tokens, and P(yes) at the first of them."""

    text: str
    perplexity: float = 1.3
    yes: float | None = None

    def logprobs(self, sampling: Sampling) -> list[TokenLogprob] | None:
        """Return the log-probabilities that a server would give: a token is a word with the space before it."""
        if not sampling.top_logprobs:
            return None
        if self.yes is not None:
            top = {"Yes": math.log(self.yes), "No": math.log(1 - self.yes)}
            return [TokenLogprob(token=self.text, logprob=top[self.text], top=top)]
        logprob = -math.log(self.perplexity)
        pieces = [word if at == 0 else f" {word}" for at, word in enumerate(self.text.split(" "))]
        return [TokenLogprob(token=piece, logprob=logprob, top={piece: logprob}) for piece in pieces]


def review(view: RequestView, *, looks_back: bool) -> judging.StepReview:
    """REVIEW_STEP, REVIEW: pass or correct the draft by the sources; without evidence rephrase the question.

    REVIEW looks back: it blames an earlier step if the sources contradict its answer.
    """
    drafted, found = str(view.given["answer"]), find_answer(view, view.question)
    if found.answer and _same(drafted, found.answer):
        return judging.Review(status="PASS")
    if drafted and view.errs("flattering"):
        return judging.Review(status="PASS")
    if found.answer and found.quotes:
        return judging.Review(status="REVISED", answer=found.answer, citations=[*found.quotes])
    if looks_back and (blamed := _blamed(view)):
        step, question = blamed
        return judging.Review(status="UNCONFIDENT", question=question, earlier_step=step)
    again = view.rephrase(view.question, 1)
    if comparison_key(again) == comparison_key(view.question):
        again = view.rephrase(view.question, 2)
    return judging.Review(status="UNCONFIDENT", question=again)


def _blamed(view: RequestView) -> tuple[int, str] | None:
    """Return the first earlier step (from 1) whose answer the sources contradict, and its question."""
    for at, (question, answer) in enumerate(view.steps, start=1):
        target = view.target(question)
        if target is None or target == WHOLE or not view.shown(target):
            continue
        if not mentions(answer, view.gold.hops[target].answer):
            return at, question
    return None


def _same(one: str, other: str) -> bool:
    return comparison_key(one) == comparison_key(other) or mentions(one, other) or mentions(other, one)


YES_OR_NO: dict[str, Callable[[RequestView], bool | None]] = {
    "evaluator/declarative": lambda view: bool(stated_answer(view.given["answer"])),
    "evaluator/consistency": lambda view: _same(view.given["answer"], view.given["second"]),
    "evaluator/evidence": lambda view: _matters(view, _shown_hops(view)),
    "evaluator/relevance": lambda view: _matters(view, _stated_hops(view)),
    "evaluator/attribution": lambda view: _is_verbatim(view) or not {*_stated_hops(view)}.isdisjoint(_shown_hops(view)),
    "evaluator/support": lambda view: (
        (found := view.answer_to(view.question)) is not None and _same(view.given["answer"], found)
    ),
}
"""By prompt, whether yes is right; None if it cannot be decided."""


def yes_or_no(view: RequestView) -> SimulatedReply:
    """Return yes or no with its probability, either of them if it cannot be decided.

    An overconfident evaluator answers yes where no is right.
    """
    parameters, rng, true = view.simulation, view.rng("odds"), YES_OR_NO[view.request.prompt](view)
    sign = 1 if true or (true is False and view.errs("overconfident")) else 0 if true is None else -1
    odds = rng.gauss(sign * parameters.yes_odds, parameters.yes_spread)
    probability = min(max(1 / (1 + math.exp(-odds)), 1e-6), 1 - 1e-6)
    return SimulatedReply(text="Yes" if probability > 0.5 else "No", yes=probability)


def _shown_hops(view: RequestView) -> list[int]:
    return [hop for hop in range(len(view.gold.hops)) if view.shown(hop)]


def _stated_hops(view: RequestView) -> list[int]:
    return [hop for hop in range(len(view.gold.hops)) if view.quote(hop, "", view.given["claim"])]


def _is_verbatim(view: RequestView) -> bool:
    claim = comparison_key(view.given["claim"]).strip(" .")
    return any(claim in comparison_key(source["text"]) for source in view.sources)


def _matters(view: RequestView, hops: list[int]) -> bool | None:
    """Return whether hops are relevant to the query: their subjects or answers are named or known.

    None if that cannot be decided: the query may be about a person that it does not name.
    """
    if not hops:
        return False
    query = str(view.given["query"])
    for hop in hops:
        known, named = view.gold.hops[hop], view.named(hop, query)
        if mentions(query, known.answer) or all(need in named or view.holds(need - 1) for need in known.needs()):
            return True
    return None


def verify(view: RequestView) -> SimulatedReply:
    """VERIFY: confident if the sources contain the answer; otherwise a guess, as a rule with low confidence."""
    value, parameters, rng = view.answer_to(view.question), view.simulation, view.rng("perplexity")
    if value is not None or view.errs("overconfident"):
        perplexity = parameters.supported_perplexity * math.exp(rng.gauss(0, parameters.supported_spread))
    else:
        perplexity = parameters.unsupported_perplexity * math.exp(rng.gauss(0, parameters.unsupported_spread))
    text = view.guess(view.question) if value is None else value
    return SimulatedReply(text=text, perplexity=max(1.01, perplexity))
