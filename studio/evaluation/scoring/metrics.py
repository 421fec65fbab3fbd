"""Answer metrics: SQuAD's exact match and F1, containment, ROUGE-L, CRAG's score, and citation scores.

Every score is a number per question, None if the metric does not apply. A question whose answer is empty has no answer:
refusing it is right.
"""

import re
import string
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from sleuth.studio.evaluation.data import INVALID

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer

REFUSALS = ("refused", "unknown", "invalid_question")

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Return text normalized as by SQuAD's evaluate-v2.0.py: lower case, no ASCII punctuation or English articles."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(said: str, answers: Sequence[str]) -> float:
    """Return 1 if the normalized answer equals an accepted one."""
    return max(float(normalise(said) == answer) for answer in _comparable(answers))


def f1(said: str, answers: Sequence[str]) -> float:
    """Return the harmonic mean of word precision and recall, against the closest accepted answer."""
    return max(_f1(normalise(said).split(), answer.split()) for answer in _comparable(answers))


def _comparable(answers: Sequence[str]) -> list[str]:
    """Return normalized answers, as in SQuAD's script without those that become empty, unless there is no other."""
    left = [normalise(answer) for answer in answers if normalise(answer) or not answer]
    return left or [""]


def _f1(said: list[str], answer: list[str]) -> float:
    if not (said and answer):  # SQuAD 2.0: an empty answer is right if there is no answer
        return float(said == answer)
    common = sum((Counter(said) & Counter(answer)).values())
    return 2 * common / (len(said) + len(answer))


def contained(said: str, answers: Sequence[str]) -> float:
    """Return 1 if an accepted answer is contained in the text, word for word after normalizing (CRP-RAG's exact
    match).
    """
    spoken = f" {normalise(said)} "
    return max(float(_within(answer, spoken)) for answer in _comparable(answers))


def _within(answer: str, spoken: str) -> bool:
    return f" {answer} " in spoken if answer else not spoken.strip()


def rouge_l(said: str, answers: Sequence[str]) -> float:
    """Return ROUGE-L's F-measure by the rouge-score package, which considers Latin letters and digits only."""
    return max(_rouge_l(said, answer) for answer in answers)


def _rouge_l(said: str, answer: str) -> float:
    if not (said.strip() and answer.strip()):
        return float(said.strip() == answer.strip())
    return float(_scorer().score(answer, said)["rougeL"].fmeasure)


@cache
def _scorer() -> "RougeScorer":
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"])


def answer_scores(
    status: str, text: str, answers: Sequence[str], judged: bool | None = None
) -> dict[str, float | None]:
    """Return all scores of an answer's text.

        CRAG's score is 1 for a right one, 0 for a refusal, -1 for a wrong one; a question taken for invalid is missing
        too.

        Args:
    status: the run's; the text of a refusal is not an answer.
    text: the answer.
    answers: accepted answers; without any, only the refusal is scored.
    judged: a judge model's opinion, if any.
    """
    refused = status in REFUSALS
    scores: dict[str, float | None] = {"refused": float(refused)}
    if not answers:
        return scores
    said = INVALID if status == "invalid_question" and INVALID in answers else "" if refused else text
    em, overlap = exact_match(said, answers), f1(said, answers)
    right = bool(em) or bool(judged)
    scores |= {"em": em, "f1": overlap, "contained": contained(said, answers), "rouge_l": rouge_l(said, answers)}
    scores |= {"answered_em": None if refused else em, "answered_f1": None if refused else overlap}
    scores["crag"] = 1.0 if right else 0.0 if refused else -1.0
    if judged is not None:
        scores["acc_lm"] = float(judged)
    return scores


def citation_scores(
    cited: Sequence[Collection[str]], gold: Sequence[str], *, answered: bool
) -> dict[str, float | None]:
    """Return the scores of citations against the gold passages; None without an answer.

        Args:
    cited: for each cited passage its id and its document's.
            gold: ids of passages or documents.
            answered: whether there is an answer.
    """
    if not (gold and answered):
        return {"support": None, "citation_precision": None, "citation_recall": None}
    right = [bool(set(names) & set(gold)) for names in cited]
    found = {name for names in cited for name in names} & set(gold)
    return {
        "support": float(any(right)),
        "citation_precision": sum(right) / len(right) if right else None,
        "citation_recall": len(found) / len(set(gold)),
    }


def quoted(text: str, quotes: Sequence[str]) -> float | None:
    """Return 1 if a quote contains the answer, word for word after normalizing; None for yes, no or nothing."""
    answer = normalise(text)
    if answer in ("", "yes", "no"):
        return None
    return max((float(_within(answer, f" {normalise(quote)} ")) for quote in quotes), default=0.0)


def shown_recall(shown: Collection[str], gold: Sequence[str]) -> dict[str, float | None]:
    """Return the share of gold passages among all that the model was shown, and whether it was shown all of them."""
    if not gold:
        return {"shown": None, "all_shown": None}
    share = len(set(shown) & set(gold)) / len(set(gold))
    return {"shown": share, "all_shown": float(share == 1)}


def cost_scores(cost: Mapping[str, float]) -> dict[str, float | None]:
    """Return the run's cost; `tokens` is the sum of prompt and completion tokens, including cached ones."""
    kept = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens", "model_seconds")
    return {"tokens": cost["prompt_tokens"] + cost["completion_tokens"], **{name: cost[name] for name in kept}}
