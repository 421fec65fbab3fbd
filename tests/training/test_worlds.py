"""Synthetic worlds: exact answers, evidence, gaps, and a test split that shares no wording with training."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sleuth.studio.evaluation.data import read_questions
from training.questions import read
from training.worlds.__main__ import write
from training.worlds.chains import Chain
from training.worlds.collection import Chapter, question_rows, worlds
from training.worlds.model import Fact, World
from training.worlds.questions import UNANSWERABLE, Question
from training.worlds.schema import Schema, load

ROOT = Path(__file__).parents[2]
SPLITS = ("train", "test")
LISTS = ("tell", "back", "clause", "later", "ask", "np", "vp")


@pytest.fixture(scope="module")
def pairs() -> list[tuple[Chapter, Chapter]]:
    """Complete worlds of both splits, each with its edition with gaps."""
    return [*worlds(3, 26, "train"), *worlds(4, 14, "test")]


def asked(pairs: Iterable[tuple[Chapter, Chapter]], *types: str) -> Iterator[tuple[World, Question]]:
    for complete, _ in pairs:
        yield from ((complete.world, each) for each in complete.questions if not types or each.type in types)


# Answers


class Evaluator:
    """Answers computed by scanning all facts, from a question's meaning alone."""

    def __init__(self, world: World) -> None:
        self.world = world
        spouses = [Fact(str(each.object), "spouse", each.subject) for each in world.facts if each.relation == "spouse"]
        self.facts = {*world.facts, *spouses}

    def ends(self, chain: Chain) -> set[str | int]:
        at: set[str | int] = {chain.start}
        for step in chain.steps:
            at = {
                each.object if step.forward else each.subject
                for each in self.facts
                if each.relation == step.relation and (each.subject if step.forward else each.object) in at
            }
        return at

    def one(self, chain: Chain) -> str | int:
        [end] = self.ends(chain)
        return end

    def value(self, relation: str, chain: Chain) -> int:
        [found] = [each.object for each in self.facts if each.relation == relation and each.subject == self.one(chain)]
        return int(found)

    def name(self, end: str | int, relation: str = "") -> str:
        if str(end) in self.world.entities:
            return self.world.entities[str(end)].name
        unit = self.world.schema.relations[relation].unit if relation else ""
        return f"{end:,} {unit}" if unit else str(end)

    def answer(self, program: tuple[Any, ...]) -> str:
        match program:
            case ("what", chain):
                return self.name(self.one(chain), chain.steps[-1].relation)
            case ("more" | "less" as way, relation, a, b):
                first, second = self.value(relation, a), self.value(relation, b)
                assert first != second
                return self.name(self.one(a if (first > second) == (way == "more") else b))
            case ("same", a, b):
                return "yes" if self.one(a) == self.one(b) else "no"
            case ("is", chain, entity):
                return "yes" if self.one(chain) == entity else "no"
            case ("count", chain, relation, kind):
                subjects = {
                    each.subject for each in self.facts if each.relation == relation and each.object == self.one(chain)
                }
                return str(sum(self.world.entities[id].kind == kind for id in subjects))
        return self.computed(program)

    def computed(self, program: tuple[Any, ...]) -> str:
        match program:
            case ("years", a, b):
                return str(int(self.one(b)) - int(self.one(a)))
            case ("true", relation, known, entity, chain):
                listed = self.world.schema.relations[relation].per_object
                assert (Fact(entity, relation, known) if listed else Fact(known, relation, entity)) in self.facts
                return self.name(self.one(chain), chain.steps[-1].relation)
            case ("value", subject, relation):
                return str(self.value(relation, Chain(subject)))
            case ("both", kind, first, second):
                sets = [
                    {each.subject for each in self.facts if (each.relation, each.object) == one}
                    for one in (first, second)
                ]
                [subject] = [id for id in sets[0] & sets[1] if self.world.entities[id].kind == kind]
                return self.name(subject)
        raise AssertionError(program)


@pytest.mark.nightly
def test_answers_follow_from_the_facts(pairs: list[tuple[Chapter, Chapter]]) -> None:
    seen: Counter[str] = Counter()
    for world, question in asked(pairs):
        if question.type not in UNANSWERABLE:
            assert Evaluator(world).answer(question.program) == question.answer, question.text
            seen[question.type] += 1
    assert min(seen.values()) >= 100 and len(seen) == 9, seen


def test_questions_without_an_answer_have_none(pairs: list[tuple[Chapter, Chapter]]) -> None:
    for complete, _ in pairs:
        told, text = Evaluator(complete.world).facts, " ".join(page.text for page in complete.edition.pages)
        for question in complete.questions:
            match question.program:
                case ("none", subject, relation):
                    assert not [each for each in told if (each.subject, each.relation) == (subject, relation)]
                    namesakes = {
                        id
                        for id, each in complete.world.entities.items()
                        if each.name == complete.world.entities[subject].name
                    }
                    assert [each for each in told if each.subject in namesakes and each.relation == relation]
                case ("absent", name):
                    assert name not in text and name in question.text
                case ("false", relation, known, wrong, _):
                    listed = complete.world.schema.relations[relation].per_object
                    assert (Fact(wrong, relation, known) if listed else Fact(known, relation, wrong)) not in told
                    assert question.hops[0].answer and not question.answer


# Pages


def test_every_fact_is_stated_once_at_its_place(pairs: list[tuple[Chapter, Chapter]]) -> None:
    for complete, _ in pairs:
        pages = {page.id: page for page in complete.edition.pages}
        assert complete.edition.places.keys() == {*complete.world.facts}
        for fact, place in complete.edition.places.items():
            assert place.page in (fact.subject, fact.object)
            assert pages[place.page].text[place.start : place.end] == place.text
            assert pages[place.page].text.count(place.text) == 1


def test_hops_are_answered_by_their_gold_passage(pairs: list[tuple[Chapter, Chapter]]) -> None:
    for complete, _ in pairs:
        texts = {page.id: page.text for page in complete.edition.pages}
        for row in question_rows(complete, complete.edition):
            for number, hop in enumerate(row["decomposition"], 1):
                assert hop["gold_id"] in row["gold_ids"]
                assert hop["answer"] in texts[hop["gold_id"]], row
                assert all(int(found) < number for found in re.findall(r"#(\d+)", hop["question"]))
            for part in row["evidence"]:
                assert texts[part["gold_id"]][part["start"] : part["end"]] == part["text"]
            assert row["answerable"] == (row["answer"] != "")
            assert not row["answerable"] or {each["gold_id"] for each in row["evidence"]} == {*row["gold_ids"]}


# Gaps


def names_at(world: World, fact: Fact, page: str) -> str:
    """Return the name that a page about one end of a fact must mention to state it."""
    other = fact.subject if page == fact.object else fact.object
    return (
        world.entities[str(other)].name
        if str(other) in world.entities
        else f"{other:,}"
        if isinstance(other, int)
        else other
    )


def test_removed_facts_are_stated_nowhere(pairs: list[tuple[Chapter, Chapter]]) -> None:
    removed = 0
    for complete, gaps in pairs:
        whole, left = ({page.id: page for page in each.edition.pages} for each in (complete, gaps))
        gone = complete.edition.places.keys() - gaps.edition.places.keys()
        names = Counter(each.name for each in complete.world.entities.values())
        for fact in gone:
            place = complete.edition.places[fact]
            assert place.text in whole[place.page].text and place.text not in left[place.page].text
            if complete.world.schema.relations[fact.relation].object:
                for page in (fact.subject, str(fact.object)):
                    name = names_at(complete.world, fact, page)
                    alone = names[name] == 1 and not any(name in each for each in names if each != name)
                    assert not alone or name not in left[page].text, fact
            removed += 1
        assert sum(left[id].text == whole[id].text for id in whole) > 0.7 * len(whole)
    assert removed > 400


def test_removed_questions_lack_a_fact_and_controls_none(pairs: list[tuple[Chapter, Chapter]]) -> None:
    for complete, gaps in pairs:
        known = {question.id: question for question in complete.questions}
        for question in gaps.questions:
            missing = {*question.facts} - gaps.edition.places.keys()
            if question.type == "removed":
                whole = known[question.pair]
                assert missing and whole.answer and whole.text == question.text
                assert not question.answer and any(not hop.answer for hop in question.hops)
            else:
                assert not missing and known[question.id] == question


# Splits


def wordings(schema: Schema) -> set[str]:
    own = {text for each in schema.relations.values() for key in LISTS for text in each.words.get(key, ())}
    frames = {text for texts in schema.frames.values() for text in texts}
    fillers = {text for kind in schema.kinds.values() for text in kind.fill}
    return own | frames | fillers | {*schema.intro}


def test_splits_share_no_wording_name_style_or_title_word() -> None:
    train, test = (load(split) for split in SPLITS)
    shared = wordings(train) & wordings(test)
    assert not shared
    assert not {*train.title_words["n"], *train.title_words["a"]} & {*test.title_words["n"], *test.title_words["a"]}
    assert not [style for style in test.name_styles if style in train.name_styles]


# Files


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.jsonl"))
    }


def test_frozen_split_matches_its_manifest(tmp_path: Path) -> None:
    script = (ROOT / "benchmarks/worlds.sh").read_text(encoding="utf-8")
    seed, count = re.search(r"--split test --seed (\d+) --worlds (\d+)", script).groups()  # type: ignore[union-attr]
    write(int(seed), int(count), "test", tmp_path)
    lines = (ROOT / "benchmarks/worlds.sha256").read_text(encoding="utf-8").splitlines()
    assert digests(tmp_path) == {name: digest for digest, name in (line.split("  ") for line in lines)}


def test_files_are_read_by_evaluation_and_training(tmp_path: Path) -> None:
    counts = write(5, 1, "train", tmp_path)
    for name, own in counts.items():
        [file] = read_questions([tmp_path / name / "questions.jsonl"])
        assert len(file.questions) == sum(own.values())
        known = read([tmp_path / name / "training.jsonl"])
        assert len(known.questions) == len(file.questions)
        gold = {each.id: each for each in file.questions}
        for row in known.questions:
            titles = [known.passages[id][0] for id in row["gold_ids"]]
            assert len(titles) == len(gold[row["id"]].gold) and len(row["decomposition"]) == len(
                gold[row["id"]].decomposition
            )
