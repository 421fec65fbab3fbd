"""Examples with mined hard negatives, composed from the items.

A negative is a passage that resembles the evidence: distractors of the same question, the right passage without the
sentences that contain the answer, another entity's passage that shares most words with the question, a multi-hop
question with one of its passages missing, and a question of which a name or number is exchanged, as many of SQuAD 2.0's
unanswerable questions were made (Rajpurkar et al., 2018, table 2).
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from sleuth.tools.evidence_checker import Evidence
from sleuth.tools.text.tokenization import sentence_spans
from training.evidence_checker.sources import COMPARISONS, COMPLETE, MULTI_HOP, WORLDS, Item

NEIGHBORS = 6
"""Similar passages that are kept for an item."""
UNKNOWN = -1
KINDS = {"span": 0, "yes": 1, "no": 2}
RELATIONS = {"supported": 0, "contradicted": 1, "not mentioned": 2}
SHARES = {
    "squad none": 3.0, "squad": 0.7, "boolq": 0.35, "claims": 0.4, "hotpot": 2.0, "2wiki": 3.0, "2wiki yes": 1.5,
    "2wiki no": 1.5, "musique": 6.0, WORLDS: 0.4, COMPARISONS: 0.7,
}  # fmt: skip
"""How often an item of a set, or of a set and a kind, is used in an epoch, on average; 1 for those not named."""
_OPPOSITES = {
    "earlier": "later", "first": "later", "later": "earlier", "more recently": "earlier", "older": "younger",
    "younger": "older",
}  # fmt: skip
_COMPARISON = re.compile(rf"\b({'|'.join(_OPPOSITES)}), (.+) or (.+?)\s*\?$")
_COVERED = 0.33
_NAME = re.compile(r"(?<=\w )(?:[A-Z][\w’'-]+)(?: [A-Z][\w’'-]+)*|\b\d[\d,.]*\b")
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A question with passages and what is to be learned from it; UNKNOWN is not learned.

    `relevant` has a value for each passage; answers are looked for in relevant ones. `facts` are supporting sentences,
    if known. `made` names how it was composed.
    """

    set: str
    text: str
    passages: tuple[Evidence, ...]
    relevant: tuple[int, ...]
    answers: tuple[str, ...] = ()
    answerable: int = UNKNOWN
    kind: int = UNKNOWN
    relation: int = UNKNOWN
    facts: tuple[str, ...] = ()
    made: str


def with_neighbors(items: Sequence[Item]) -> list[Item]:
    """Return the items, those with one passage with similar passages of other items (by TF-IDF) as `others`.

    A similar passage that contains the answer, or a third of the words of the statement, is left out: it may be
    evidence. Call this with the items of one part.
    """
    found = list(items)
    for statements in (False, True):
        places = [
            at for at, item in enumerate(items) if item.set not in MULTI_HOP and (item.kind in RELATIONS) == statements
        ]
        if places:
            for at, others in zip(places, _neighbors([items[at] for at in places]), strict=True):
                found[at] = replace(items[at], others=others)
    return found


def _neighbors(items: Sequence[Item]) -> Iterator[tuple[Evidence, ...]]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    pool = list(dict.fromkeys(item.gold[0] for item in items))
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english", dtype=np.float32)
    table = vectorizer.fit_transform(f"{passage.title} {passage.text}" for passage in pool).T.tocsr()
    for begin in range(0, len(items), 512):
        part = items[begin : begin + 512]
        scores = (vectorizer.transform(f"{item.gold[0].title} {item.text}" for item in part) @ table).toarray()
        for item, row in zip(part, scores, strict=True):
            nearest = [pool[at] for at in np.argsort(-row, kind="stable")[: 4 * NEIGHBORS]]
            yield tuple(passage for passage in nearest if not _may_be_evidence(passage, item))[:NEIGHBORS]


def _may_be_evidence(passage: Evidence, item: Item) -> bool:
    if passage.text == item.gold[0].text:
        return True
    if item.answers:
        return bool(occurrences(item.answers, passage.text))
    if item.kind in RELATIONS:
        wanted = {word.lower() for word in _WORD.findall(item.text)}
        return len(wanted & {word.lower() for word in _WORD.findall(passage.text)}) > _COVERED * len(wanted)
    return passage.title == item.gold[0].title


def occurrences(answers: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Return the character spans of the answers as whole words: as written or, if there is none, in any case."""
    for flags in (0, re.IGNORECASE):
        found = [
            match.span()
            for answer in answers
            for match in re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", text, flags)
        ]
        if found:
            return sorted(set(found))
    return []


def without_answer(passage: Evidence, answers: Sequence[str]) -> Evidence | None:
    """Return the passage without the sentences that contain an answer; None if nothing or an answer is left."""
    spans = sentence_spans(passage.text, lines=False)
    kept = " ".join(
        passage.text[slice(*span)] for span in spans if not occurrences(answers, passage.text[slice(*span)])
    )
    return replace(passage, text=kept) if kept and not occurrences(answers, kept) else None


def altered(question: str, passage: Evidence, answers: Sequence[str], dice: Random) -> str | None:
    """Return the question with a name or number of the passage replaced by another of the passage; None without two."""
    inside = list(dict.fromkeys(_NAME.findall(passage.text)))
    mine = [name for name in _NAME.findall(question) if name in passage.text]
    dice.shuffle(mine)
    for name in mine:
        others = [
            other
            for other in inside
            if other[0].isdigit() == name[0].isdigit()
            and other not in question
            and name not in other
            and not any(other in answer or answer in other for answer in answers)
        ]
        if others:
            return question.replace(name, dice.choice(others))
    return None


def epoch(items: Sequence[Item], seed: int) -> list[Example]:
    """Return the examples of one epoch in random order; the same seed gives the same examples."""
    dice = Random(seed)  # noqa: S311 - repeatable by design
    found = []
    for item in items:
        name = "claims" if item.kind in RELATIONS else item.set
        share = SHARES.get(f"{name} {item.kind}", SHARES.get(name, 1.0))
        found += [compose(item, dice) for _ in range(int(share + dice.random()))]
    dice.shuffle(found)
    return found


def compose(item: Item, dice: Random) -> Example:
    """Return one of the item's examples at random."""
    if item.set in MULTI_HOP:
        return _multi_hop(item, dice)
    if item.kind in RELATIONS:
        return _statement(item, dice)
    return _single(item, dice)


def plain(item: Item) -> Example:
    """Return the item with its own passages, and for a multi-hop question all of its distractors."""
    every = [*item.gold, *(item.others if item.set in MULTI_HOP else ())]
    order = sorted(range(len(every)), key=lambda at: every[at].text)  # the gold is not always first
    right = item.kind not in ("none", "not mentioned")
    label = 1 if right else UNKNOWN if item.set in MULTI_HOP else 0  # of two hops, one may be there
    return Example(
        set=item.set,
        text=item.text,
        passages=tuple(every[at] for at in order),
        relevant=tuple(label if at < len(item.gold) else 0 for at in order),
        answers=item.answers,
        answerable=UNKNOWN if item.kind in RELATIONS else int(right),
        kind=KINDS.get(item.kind, UNKNOWN),
        relation=RELATIONS.get(item.kind, UNKNOWN),
        facts=item.facts,
        made="unanswerable" if item.kind == "none" else "own passage",
    )


def negative(item: Item, made: str, dice: Random) -> Example | None:
    """Return the item's negative of a kind; None if it has none.

    Args:
        item: a question or statement.
        made: `sentence removed`, `another passage` or `question altered`.
        dice: for what is chosen.
    """
    own = plain(item)
    if made == "another passage" and item.others:
        passages: tuple[Evidence, ...] = (dice.choice(item.others),)
    elif made == "sentence removed" and item.answers:
        left = [without_answer(passage, item.answers) for passage in own.passages]
        if None in left:
            return None
        passages = tuple(passage for passage in left if passage)
    elif made == "question altered" and item.answers:
        text = altered(item.text, item.gold[0], item.answers, dice)
        if text is None:
            return None
        own, passages = replace(own, text=text), own.passages
    else:
        return None
    return replace(
        own,
        passages=passages,
        relevant=(0,) * len(passages),
        answers=(),
        answerable=UNKNOWN if item.kind in RELATIONS else 0,
        kind=UNKNOWN,
        relation=RELATIONS["not mentioned"] if item.kind in RELATIONS else UNKNOWN,
        made=made,
    )


def _single(item: Item, dice: Random) -> Example:
    own = plain(item)
    if item.kind == "none":
        return own
    made = dice.choices(
        ("alone", "among others", "sentence removed", "another passage", "question altered"), (50, 15, 10, 10, 15)
    )[0]
    if made == "among others":
        return _among(own, item.others, dice, most=dice.randint(1, 3))
    return (negative(item, made, dice) if made != "alone" else None) or own


def _statement(item: Item, dice: Random) -> Example:
    own = (negative(item, "another passage", dice) if dice.random() < 0.3 else None) or plain(item)
    return _among(own, item.others, dice, most=dice.randint(1, 2)) if dice.random() < 0.3 else own


def _among(own: Example, others: Sequence[Evidence], dice: Random, *, most: int) -> Example:
    """Return the example with more passages, which are not relevant, in random order."""
    more = [passage for passage in others if passage not in own.passages]
    rows = [
        *zip(own.passages, own.relevant, strict=True),
        *((passage, 0) for passage in dice.sample(more, min(most, len(more)))),
    ]
    dice.shuffle(rows)
    return replace(own, passages=tuple(row[0] for row in rows), relevant=tuple(row[1] for row in rows))


def _multi_hop(item: Item, dice: Random) -> Example:
    """Return gold passages among as many distractors as a window holds, or fewer.

    In a fifth of the examples one gold passage is missing, in a tenth all are, in some the sentences with the answer.
    Half of the comparisons that have an opposite are asked the other way round.
    """
    if dice.random() < 0.5:
        item = opposite(item) or item
    gold = plain(replace(item, others=()))
    made = dice.choices(("all", "one missing", "all missing", "sentence removed"), (65, 20, 10, 5))[0]
    if made == "one missing" and len(item.gold) > 1:
        gold = one_missing(item, dice)
    elif made == "all missing" and item.others:
        gold = replace(gold, passages=(), relevant=(), answers=(), answerable=0, kind=UNKNOWN, made=made)
    elif made == "sentence removed":
        gold = negative(replace(item, others=()), made, dice) or gold
        gold = replace(gold, relevant=tuple(each or UNKNOWN for each in gold.relevant))
    return _among(gold, item.others, dice, most=dice.choice((0, 2, 4, 8, 8)) or int(not gold.passages))


def opposite(item: Item) -> Item | None:
    """Return a comparison of two with its opposite question (earlier, later), which has the other answer."""
    match = _COMPARISON.search(item.text)
    if not match:
        return None
    word, *names = match.groups()
    others = [name for name in names if name.lower() not in {answer.lower() for answer in item.answers}]
    if len(others) != 1:
        return None
    text = item.text[: match.start(1)] + _OPPOSITES[word] + item.text[match.end(1) :]
    return replace(item, text=text, answers=(others[0],))


def one_missing(item: Item, dice: Random, *, others: int = 0) -> Example:
    """Return the question without one of its gold passages, among some of its distractors."""
    kept = dice.sample(item.gold, len(item.gold) - 1)
    own = plain(replace(item, gold=tuple(kept), others=()))
    has_answer = any(occurrences(item.answers, passage.text) for passage in kept)
    unclear = has_answer and item.set not in COMPLETE
    own = replace(own, answerable=UNKNOWN if unclear else 0, kind=UNKNOWN, made="one missing")
    return _among(own, item.others, dice, most=others) if others else own


def by_composition(examples: Sequence[Example]) -> dict[str, int]:
    """Return the number of examples of each set and composition."""
    counts: dict[str, int] = defaultdict(int)
    for example in examples:
        counts[f"{example.set}: {example.made}"] += 1
    return dict(sorted(counts.items()))
