"""Made-up passages that name each other; a smaller corpus is the beginning of a larger one.

Each passage is about a person or place of its own: its title is a name, its text has six sentences of words whose
frequencies fall as in prose, and names three other passages. Two of these are among the fifty before it, the third is
any before it, and the lower its number the likelier: some names become frequent, and more so as the corpus grows.
"""

import json
from itertools import accumulate
from pathlib import Path
from random import Random

from sleuth.tools.documents.loading import LoadedDocument, PassageSpan

NEAR = 50
SENTENCES, WORDS = 6, 12
VOCABULARY = 60_000
FUNCTION = "the of and in a to was is for as on with by he that at from his it an were which are this or be"
ONSETS = "b br d dr f g gr h k kl l m n p pr r s st t tr v w z"
VOWELS = "a e i o u ae ia ou"
FIRST_NAMES = 400


def syllables(number: int) -> str:
    """Return a word for a number; no two have the same."""
    parts, onsets, vowels = [], ONSETS.split(), VOWELS.split()
    while True:
        number, at = divmod(number, len(onsets) * len(vowels))
        parts.append(onsets[at % len(onsets)] + vowels[at // len(onsets)])
        if not number:
            return "".join(parts) + "n"
        number -= 1


def name(number: int) -> str:
    """Return the subject of passage `number`: a common first name and a family name."""
    return f"{syllables(number * 7919 % FIRST_NAMES).capitalize()} {syllables(1000 + number).capitalize()}"


FUNCTION_WORDS = set(FUNCTION.split())
VOCABULARY_WORDS = [*FUNCTION.split(), *(syllables(10_000 + rank) for rank in range(VOCABULARY))]
WEIGHTS = list(accumulate(1 / (rank + 2) for rank in range(len(VOCABULARY_WORDS))))


def named_in(number: int, seed: int) -> list[int]:
    """Return the passages that a passage names."""
    if not number:
        return []
    dice = Random(f"{seed} links {number}")
    near = [number - dice.randint(1, min(NEAR, number)) for _ in range(2)]
    return [*near, int(number ** dice.random()) - 1]


def passage(number: int, seed: int) -> dict[str, str]:
    """Return a line of a corpus."""
    dice = Random(f"{seed} {number}")
    drawn = dice.choices(VOCABULARY_WORDS, cum_weights=WEIGHTS, k=SENTENCES * WORDS)
    sentences = [drawn[at : at + WORDS] for at in range(0, len(drawn), WORDS)]
    sentences[0][:0] = [*name(number).split(), "was"]
    for at, other in enumerate(named_in(number, seed), start=1):
        sentences[at].insert(dice.randint(2, WORDS - 2), f"of {name(other)}")
    text = " ".join(" ".join([words[0].capitalize(), *words[1:]]) + "." for words in sentences)
    return {"id": f"p{number:07}", "title": name(number), "text": text}


def line_of(number: int) -> LoadedDocument:
    """Return the same as ingestion reads it."""
    line = passage(number, 0)
    title, text = line["title"], line["text"]
    spans = (PassageSpan(0, len(text), ""),)
    return LoadedDocument(id=line["id"], title=title, text=text, media_type="text/plain", tags=(), spans=spans)


def questions(passages: int, seed: int, count: int) -> list[tuple[str, str]]:
    """Return two-hop questions: each describes a passage by another one that it names.

    Each comes with the id of the passage that it is about. The other words are random.
    """
    dice = Random(f"{seed} questions")
    made = []
    for _ in range(count):
        number = dice.randrange(1, passages)
        what = dice.choices(VOCABULARY_WORDS, cum_weights=WEIGHTS, k=3)
        about = named_in(number, seed)[dice.randrange(2)]
        made.append((f"What {' '.join(what)} is told of the one whom {name(number)} names?", f"p{about:07}"))
    return made


def write(file: Path, passages: int, seed: int) -> None:
    with file.open("w", encoding="utf-8") as lines:
        for number in range(passages):
            lines.write(json.dumps(passage(number, seed)) + "\n")
