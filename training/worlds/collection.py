"""Collections of worlds: two editions of each, their questions, and the rows of the files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from training.worlds.chains import Hop
from training.worlds.model import Fact, Names, World, sample_world
from training.worlds.pages import Book, Edition, value_text
from training.worlds.questions import REMOVED, UNANSWERABLE, Asker, Question
from training.worlds.schema import Split, load

PARAGRAPHS = 10
"""Paragraphs of a training row, or its gold pages if they are more."""
_IMPLIED = frozenset({"town_region", "region_country"})
"""Relations that others imply: a capital lies in its country."""
EDITIONS = ("complete", "gaps")
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chapter:
    """One world in one edition, with its questions."""

    world: World
    edition: Edition
    questions: list[Question]


def worlds(seed: int, count: int, split: Split) -> Iterator[tuple[Chapter, Chapter]]:
    """Yield worlds, the same ones for the same arguments: each complete, and without some telling sentences.

    The second edition is asked the questions whose telling sentence is missing (`pair` is the id of the question in the
    first edition), and as many that it still answers.
    """
    dice = Random(f"{split} {seed}")  # noqa: S311 - repeatable by design
    schema = load(split)
    names = Names(schema, dice)
    for number in range(count):
        world = sample_world(f"{split}{seed}-{number:03}", schema, names, dice)
        book = Book(world, dice)
        edition = book.write()
        asked = Asker(world, book, edition, names, dice).ask_all()
        asked = [replace(each, id=f"{world.id}-q{at:02}") for at, each in enumerate(asked)]
        complete = Chapter(world=world, edition=edition, questions=asked)
        yield complete, _with_gaps(complete, book, dice)


def _with_gaps(complete: Chapter, book: Book, dice: Random) -> Chapter:
    """Return a world without the telling sentences of some questions."""
    able = [each for each in complete.questions if _removable(each, book)]
    chosen = dice.sample(able, min(REMOVED, len(able)))
    dropped: list[Fact] = []
    for question in chosen:
        dropped += book.group(dice.choice(_removable(question, book)))
    gone = frozenset(dropped)
    whole = [each for each in able if not {*each.facts} & gone]
    control = dice.sample(whole, min(len(chosen), len(whole)))
    questions = [*(_remove(each, gone) for each in chosen), *control]
    return Chapter(world=complete.world, edition=book.write(gone), questions=questions)


def _remove(question: Question, dropped: frozenset[Fact]) -> Question:
    """Return a question whose hops lack the answers that the dropped facts, or hops without an answer, would give."""
    missing: set[int] = set()
    hops = list[Hop]()
    for number, hop in enumerate(question.hops, 1):
        if {*hop.facts} & dropped or any(f"#{each}" in hop.question for each in missing):
            missing.add(number)
        hops.append(replace(hop, answer="") if number in missing else hop)
    kept = replace(question, answer="", aliases=(), type="removed", hops=tuple(hops), premise="")
    return replace(kept, pair=question.id, id=f"{question.id}-removed")


def _removable(question: Question, book: Book) -> list[Fact]:
    """Return the facts without which a question has no answer: nothing else in the world implies them."""
    last = question.hops[-1].facts if question.hops else ()
    if question.type in UNANSWERABLE or (question.type == "count" and len(last) == 1):  # fewer pages, another number
        return []
    dates = {name for name, relation in book.world.schema.relations.items() if relation.value}
    ordered = question.type == "comparison"  # the order of dates may follow from other dates
    needed = last if question.type == "true_premise" else question.facts
    kept = [fact for fact in needed if fact.relation not in _IMPLIED]
    return [] if ordered and {fact.relation for fact in kept} & dates else kept


def corpus_rows(chapter: Chapter) -> Iterator[Row]:
    """Yield the lines of a corpus file."""
    for page in chapter.edition.pages:
        yield {"id": page.id, "title": page.title, "text": page.text}


def question_rows(chapter: Chapter, whole: Edition) -> Iterator[Row]:
    """Yield the lines of a questions file; `whole` has the pages on which missing answers would be expected."""
    for question in chapter.questions:
        yield _question_row(question, chapter, whole)


def _question_row(question: Question, chapter: Chapter, whole: Edition) -> Row:
    places = [whole.places[fact] for fact in question.facts]
    told = [chapter.edition.places[fact] for fact in question.facts if fact in chapter.edition.places]
    expected = question.pages[0] if question.pages else ""
    hops = [
        {
            "question": hop.question,
            "answer": hop.answer,
            "gold_id": whole.places[hop.facts[0]].page if hop.facts else expected,
        }
        for hop in question.hops
    ]
    evidence = [
        {"gold_id": place.page, "text": place.text, "start": place.start, "end": place.end}
        for place in dict.fromkeys(told)
    ]
    row = {
        "id": question.id,
        "question": question.text,
        "answer": question.answer,
        "answer_aliases": list(question.aliases),
        "type": question.type,
        "hops": max(1, len(question.hops)),
        "gold_ids": list(dict.fromkeys([*(place.page for place in places), *question.pages])),
        "decomposition": hops,
        "evidence": evidence,
        "evidence_triples": [_triple(fact, chapter.world) for fact in question.facts if fact in chapter.edition.places],
        "answerable": bool(question.answer),
    }
    extra = {"reason": "" if question.answer else question.type, "premise": question.premise, "pair": question.pair}
    return row | {key: value for key, value in extra.items() if value}


def _triple(fact: Fact, world: World) -> list[str]:
    return [world.entities[fact.subject].name, fact.relation.replace("_", " "), value_text(world, fact)]


def training_rows(chapter: Chapter, whole: Edition, seed: int) -> Iterator[Row]:
    """Yield the questions with paragraphs: their gold pages, and others that resemble them."""
    texts = {page.id: page for page in chapter.edition.pages}
    for question in chapter.questions:
        dice = Random(f"{seed} {question.id}")  # noqa: S311 - repeatable by design
        row = _question_row(question, chapter, whole)
        gold: list[str] = row["gold_ids"]
        chosen = gold + _distractors(question, gold, chapter, dice)[: max(0, PARAGRAPHS - len(gold))]
        dice.shuffle(chosen)
        paragraphs = [{"title": texts[id].title, "text": texts[id].text, "is_supporting": id in gold} for id in chosen]
        steps = [{**hop, "paragraph": chosen.index(hop["gold_id"])} for hop in row["decomposition"]]
        yield {**row, "paragraphs": paragraphs, "decomposition": steps}


def _distractors(question: Question, gold: Sequence[str], chapter: Chapter, dice: Random) -> list[str]:
    """Return other pages: namesakes first, then those that share names with the question or kinds with the gold."""
    entities = chapter.world.entities
    names, kinds = {entities[id].name for id in gold}, {entities[id].kind for id in gold}
    others = [each for each in entities.values() if each.id not in gold]
    dice.shuffle(others)
    order = {
        each.id: (each.name not in names, each.name not in question.text, each.kind not in kinds) for each in others
    }
    return sorted(order, key=lambda id: order[id])
