"""Citations of a model that writes no citations: the passages whose names it took over, and those with its answer."""

from collections.abc import Iterator, Mapping, Sequence

from sleuth.graphs.core.answer import Citation
from sleuth.graphs.evidence.citations import cite_sentence, ensure_verbatim_support
from sleuth.tools.text import find_mentions, kept_names
from sleuth.tools.types import Passage


def cite_used_passages(
    answer: str, question: str, turns: Mapping[str, str], found: Mapping[str, Sequence[Passage]]
) -> list[Citation]:
    """Return citations of the passages that an answer follows from.

    A passage was used if it has a name that the model wrote for the first time after it was found: the name led on to
    the next search. The sentence with the answer is cited too. If no passage has either, the sentences with the names
    of the question are cited.

    Args:
        answer: the model's answer.
        question: the question; its names are no findings.
        turns: the model's texts, by their number.
        found: the passages of the searches, by the number of the turn that asked for them.
    """
    known = set(kept_names(question))
    used: list[Citation] = []
    for at, passages in found.items():
        known |= _names(text for number, text in turns.items() if int(number) <= int(at))
        new = _names(text for number, text in turns.items() if int(number) == int(at) + 1) - known
        used += _cite(new, passages)
    shown = [passage for passages in found.values() for passage in passages]
    citations = ensure_verbatim_support(answer, used, shown)
    return citations or _cite(set(kept_names(question)), shown)


def _names(texts: Iterator[str]) -> set[str]:
    return {mention.name for text in texts for mention in find_mentions(text) if mention.sure}


def _cite(names: set[str], passages: Sequence[Passage]) -> list[Citation]:
    """Return the first sentence with each of these names."""
    cited: dict[str, Citation] = {}
    for passage in passages:
        for mention in find_mentions(passage.text):
            if mention.name in names and mention.name not in cited:
                cited[mention.name] = cite_sentence(passage, mention.start)
    return list({(each["passage"], each["start"]): each for each in cited.values()}.values())
