"""Questions that compare dates of real pages, as 2WikiMultihopQA asks them, with answers computed from the pages.

The years of a person's life, and the year and the director of a film, are read from the beginnings of pages. Equal
years are not compared.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from sleuth.tools.evidence_checker import Evidence
from sleuth.tools.text.tokenization import sentence_spans

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = rf"(?:(?:\d{{1,2}} )?(?:{_MONTHS}),? (?:\d{{1,2}},? )?)?\d{{4}}"
_LIFE = re.compile(rf"\((?:\s*|[^()]*?[;,] ?)(?:born )?(?P<born>{_DATE})\s*[–-]\s*[^()\d]*?(?P<died>{_DATE})\)")
_BIRTH = re.compile(rf"\([^()]*?\bborn:? [^()\d]*?(?P<born>{_DATE})[^()]*\)")
_FILM = re.compile(r"\bis an? (?:[\w-]+ )*?(?P<released>(?:1[89]|20)\d\d) (?:[\w-]+[ ,]+){0,8}?film\b")
_WORD = r"(?:[A-Z]\.|[A-Z][\w’'-]+|de|von|van|der|la)"
_DIRECTOR = re.compile(rf"\bdirected by ((?:{_WORD} ){{0,4}}[A-Z][\w’'-]+)")
_HEAD = 400
"""Characters of a page that are read."""
_OTHERS = 8
_SOME = 1500
"""Comparisons of two people, and of two films."""
_PEOPLE = {
    "born": ("Who was born first, {0} or {1}?", "Who was born earlier, {0} or {1}?", "Who is older, {0} or {1}?"),
    "died": ("Who died first, {0} or {1}?", "Who died earlier, {0} or {1}?"),
}
_FILMS = {
    "released": (
        "Which film was released first, {0} or {1}?",
        "Which film came out first, {0} or {1}?",
        "Which film was released earlier, {0} or {1}?",
    ),
}
_DIRECTORS = {
    "born": (
        "Which film has the director who was born first, {0} or {1}?",
        "Which film has the director born earlier, {0} or {1}?",
        "Which film whose director is older, {0} or {1}?",
    ),
    "died": (
        "Which film has the director who died first, {0} or {1}?",
        "Which film has the director died earlier, {0} or {1}?",
    ),
}
_STEPS = {
    "born": ("When was the director of film {0} born?", "What is the date of birth of the director of film {0}?"),
    "died": ("When did the director of film {0} die?", "What is the date of death of the director of film {0}?"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page with its dates, and the places in its text where they are; of a film, its director's page, if known."""

    passage: Evidence
    dates: Mapping[str, str]
    places: tuple[int, ...]
    director: "Page | None" = None

    @property
    def name(self) -> str:
        """The title without what is in brackets."""
        return _name_of(self.passage.title)

    def facts(self) -> list[str]:
        """Return the sentences that state the dates."""
        text = self.passage.text
        ends = sentence_spans(text, lines=False)
        return [next(text[start:end] for start, end in ends if end > place) for place in self.places]


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A question with its evidence, as an Item has them."""

    text: str
    answer: str
    gold: tuple[Evidence, ...]
    others: tuple[Evidence, ...]
    facts: tuple[str, ...]


def compose_questions(passages: Sequence[Evidence], seed: int = 0) -> Iterator[Question]:
    """Yield comparisons of people, of films and of their directors, and questions for the dates of directors."""
    dice = Random(seed)  # noqa: S311 - repeatable by design
    people = _people(passages)
    films = _films(passages, people)
    directed = [film for film in films if film.director]
    groups = (
        (dice.sample(people, min(_SOME, len(people))), _PEOPLE),
        (dice.sample(films, min(_SOME, len(films))), _FILMS),
        (directed * 4, _DIRECTORS),
    )
    for pages, templates in groups:
        pool = [page.passage for page in pages]
        for page in pages:
            yield from _comparison(page, dice.choice(pages), templates, pool, dice)
    for film in directed:
        yield from _steps(film, [page.passage for page in people], dice)


def _comparison(
    one: Page, two: Page, templates: Mapping[str, Sequence[str]], pool: Sequence[Evidence], dice: Random
) -> Iterator[Question]:
    subjects = [page.director or page if templates is _DIRECTORS else page for page in (one, two)]
    relations = [each for each in templates if all(each in subject.dates for subject in subjects)]
    if not relations:
        return
    relation = dice.choice(relations)
    years = [subject.dates[relation][-4:] for subject in subjects]
    if years[0] != years[1]:
        text = dice.choice(templates[relation]).format(one.name, two.name)
        answer = (one if years[0] < years[1] else two).name
        yield _question(text, answer, (one, two, *subjects), pool, dice)


def _steps(film: Page, pool: Sequence[Evidence], dice: Random) -> Iterator[Question]:
    if film.director:
        for relation, date in film.director.dates.items():
            text = dice.choice(_STEPS[relation]).format(film.name)
            yield _question(text, date, (film, film.director), pool, dice)


def _question(text: str, answer: str, pages: Sequence[Page], pool: Sequence[Evidence], dice: Random) -> Question:
    gold = tuple(dict.fromkeys(page.passage for page in pages))
    others = (passage for passage in dice.sample(pool, min(_OTHERS, len(pool))) if passage not in gold)
    facts = dict.fromkeys(fact for page in pages for fact in page.facts())
    return Question(text=text, answer=answer, gold=gold, others=tuple(others), facts=tuple(facts))


def _people(passages: Sequence[Evidence]) -> list[Page]:
    found = []
    for passage in filter(_is_named, passages):
        head = passage.text[:_HEAD]
        if match := _LIFE.search(head) or _BIRTH.search(head):
            found.append(Page(passage=passage, dates=match.groupdict(), places=(match.start(),)))
    return found


def _films(passages: Sequence[Evidence], people: Sequence[Page]) -> list[Page]:
    by_name: dict[str, list[Page]] = {}
    for page in people:
        if re.search(r"director|filmmaker", page.passage.text[:_HEAD]):
            by_name.setdefault(page.name, []).append(page)
    found = []
    for passage in filter(_is_named, passages):
        head = passage.text[:_HEAD]
        match, directed = _FILM.search(head), _DIRECTOR.search(head)
        if match:
            own = by_name.get(directed[1], []) if directed else []
            places = (match.start(), directed.start()) if directed else (match.start(),)
            director = own[0] if len(own) == 1 else None
            found.append(Page(passage=passage, dates=match.groupdict(), places=places, director=director))
    return found


def _is_named(passage: Evidence) -> bool:
    """Return whether the text contains the name, which is the answer of a comparison."""
    return _name_of(passage.title).lower() in passage.text.lower()


def _name_of(title: str) -> str:
    return re.sub(r" \(.*", "", title)
