"""The simulated model as a model should learn to write: in the passages' words, and without guesses.

Repeated questions become broader; they have no marker such as "according to the documents".
"""

import re
from functools import partial

from sleuth.agents.llm.quote_grammar import clauses
from sleuth.agents.role import Output
from sleuth.agents.roles import judging, planning, reading
from sleuth.tools.text.normalization import comparison_key
from training.simulation import Gold, SimulatedModel, answering
from training.simulation.gold import WHOLE
from training.simulation.judging import review
from training.simulation.model import HANDLERS
from training.simulation.planning import refine
from training.simulation.request_view import RequestView
from training.simulation.wording import (
    ask_relation,
    content_words,
    fill_references,
    find_names,
    mentions,
    shorten,
)

_WORD = re.compile(r"\w+")


def broaden(question: str) -> str:
    """Return a broader question about the names in a question, for when the question itself found nothing."""
    rest = (word for word in _WORD.findall(question) if content_words(word))
    return shorten(f"What is known about {' and '.join(find_names(question)[-2:]) or ' '.join(rest)}?")


def quote_clause(unit: str, answer: str, most: int = 120) -> str:
    """Return the words of a sentence with an answer, short enough to copy, from the beginning of a clause.

    They begin with the sentence, or with the earliest clause from which the answer is within `most` characters, and end
    with the answer, or later if that would be hardly more than the answer.
    """
    at = max(0, unit.casefold().find(answer.casefold()))
    end = _word_end(unit, min(at + len(answer), at + most))
    begins = [begin for begin in clauses(unit) if end - most <= begin <= at]
    start = 0 if end <= most else min(begins, default=at)
    return unit[start : max(end, _word_end(unit, start + most // 2))].strip(" ,;:(")


def _word_end(text: str, at: int) -> int:
    """Return the end of the word at a position, or the text's end."""
    found = _WORD.match(text, max(0, at - 1))
    return min(len(text), max(at, found.end() if found else at))


def sentence(gold: Gold, hop: int) -> str:
    """Return a hop's answer in the passage's words, with its title if they do not name their subject."""
    known = gold.hops[hop]
    subject = fill_references(known.subject, {at: each.answer for at, each in enumerate(gold.hops, start=1)})
    words_of_it = quote_clause(known.evidence, known.answer, most=180)
    if not mentions(words_of_it, known.answer) and gold.origin == "triples":
        return f"The {known.predicate} of {subject} is {known.answer}."
    named = mentions(words_of_it, subject) or mentions(words_of_it, known.title)
    return words_of_it if named else f"{known.title}: {words_of_it}"


class TeachingView(RequestView):
    """A request whose reply is to be learned."""

    def target(self, question: str) -> int | None:
        """Return the hop (from 0) that a text asks for, also more broadly."""
        if comparison_key(question) == comparison_key(self.gold.question):
            return WHOLE
        asked = [*((self.gold.asked(hop), hop) for hop in range(len(self.gold.hops))), (self.gold.question, WHOLE)]
        for each, hop in asked:
            if comparison_key(question) == comparison_key(broaden(each)):
                return hop
        return super().target(question)

    def statement(self, hop: int) -> str:
        """Return a hop's (from 0) answer in the passage's words."""
        return sentence(self.gold, hop)

    def excerpt(self, unit: str, answer: str) -> str:
        """Return few words, as a model is to learn to copy them."""
        return quote_clause(unit, answer)

    def rephrase(self, question: str, way: int) -> str:
        """Return a broader question; way 0 does not change it."""
        return broaden(question) if way else question

    def thought(self, hop: int) -> str:
        """Return the place of a hop (from 0) and what it asks for."""
        known, needs = self.gold.hops[hop], self.gold.hops[hop].needs()
        by_relation = known.question == ask_relation(known.subject, known.predicate)
        wanted = f"the {known.predicate}" if by_relation else "what builds on it" if needs else "the fact to begin with"
        return f"{'then' if needs else 'first'} {wanted}"[:120]


def _from_facts(view: RequestView) -> reading.FromFacts:
    said = answering.from_facts(view)
    return said if said.known else said.model_copy(update={"answer": ""})


def _long_from_facts(view: RequestView) -> reading.LongFromFacts:
    said = answering.long_from_facts(view)
    return said if said.known else said.model_copy(update={"sentences": said.sentences[:-1]})


def _aggregate(view: RequestView) -> Output:
    is_shown = any(view.shown(hop) for hop in answering.asked_for(view))
    return answering.aggregate(view) if is_shown else reading.Knowledge()


def _refine(view: RequestView) -> Output:
    planned = str(view.given["question"])
    is_whole = view.target(planned) == WHOLE and not view.errs("wrong-question")
    return planning.Refined(question=planned) if is_whole else refine(view)


def _review(view: RequestView, *, looks_back: bool) -> judging.StepReview:
    said = review(view, looks_back=looks_back)
    is_repeated = said.status == "UNCONFIDENT" and comparison_key(said.question) == comparison_key(view.question)
    target = view.target(view.question)
    if not is_repeated or target in (None, WHOLE) or getattr(said, "earlier_step", None):
        return said
    return said.model_copy(update={"question": view.gold.asked(target)})


class TeachingModel(SimulatedModel):
    """The model of one question's run, whose replies are to be learned."""

    handlers = {  # noqa: RUF012 - a constant
        **HANDLERS,
        "answerer/from_facts": _from_facts,
        **dict.fromkeys(("answerer/long_from_facts", "answerer/long_from_facts_with_examples"), _long_from_facts),
        **dict.fromkeys(("aggregator/aggregate", "aggregator/aggregate_in_detail"), _aggregate),
        "refiner/refine": _refine,
        "reviewer/review": partial(_review, looks_back=True),
        "reviewer/review_step": partial(_review, looks_back=False),
    }
    view = TeachingView
