"""Questions and statements with their passages, read from the training files of public data sets.

Each item belongs to one part: `train`, `tune` (for the curve and the temperatures) or `report`. The part follows from
the SHA-1 of the passage, or of a multi-hop question's id, so that no passage of one part is read in another: of the
multi-hop questions for training, those that share a gold passage with a held-back one are left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha1
from pathlib import Path
from typing import Literal, TypeAlias

from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker import Evidence
from training.evidence_checker.comparisons import compose_questions
from training.questions import Abstract, Row, ScientificClaim, Titled, TrainingQuestion, lines

Part: TypeAlias = Literal["train", "tune", "report"]
Kind: TypeAlias = Literal["span", "yes", "no", "none", "supported", "contradicted", "not mentioned"]

WORLDS, COMPARISONS = "worlds", "comparisons"
MULTI_HOP = ("hotpot", "2wiki", "musique", WORLDS, COMPARISONS)
COMPLETE = ("2wiki", "musique", WORLDS, COMPARISONS)
"""Sets of questions that need every gold passage; many of HotpotQA's can be answered from one."""
SINGLE_FILES = (("train/squad2", "squad"), ("squad/dev", "squad"), ("train/nq", "nq"), ("train/boolq", "boolq"))
MULTI_HOP_FILES = (
    *(("train/hotpot", "hotpot"), ("hotpot/train", "hotpot")),
    *(("train/2wiki", "2wiki"), ("2wiki/train-like", "2wiki")),
    *(("train/musique", "musique"), ("musique/train", "musique")),
)
"""Training files with the name of their set."""
LEFT_OUT = ("attribution",)
"""Claim sets whose terms are not known: nothing that is shipped may be trained on them."""
_COMPUTED = ("count", "date_arithmetic")
"""Types of questions of worlds whose answer is a number that no passage states."""
_RELATIONS: dict[str, Kind] = {
    "supported": "supported",
    "refuted": "contradicted",
    "SUPPORT": "supported",
    "CONTRADICT": "contradicted",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """A question or statement; `gold` is its evidence, `others` are passages that are none.

    `kind` is the answer's kind, or a statement's relation to `gold`; `answers` are the accepted answers of a span.
    `none` is an unanswerable question, whose `gold` only seems to answer it. `facts` are the sentences of `gold` that
    the answer takes; none if they are not known.
    """

    set: str
    id: str
    part: Part
    text: str
    kind: Kind
    gold: tuple[Evidence, ...]
    answers: tuple[str, ...] = ()
    others: tuple[Evidence, ...] = ()
    facts: tuple[str, ...] = ()


class _Claim(Row):
    id: str
    set: str
    claim: str
    label: str
    evidence: list[str]
    supporting: tuple[tuple[int, ...], ...] = ()
    title: str = ""


def read_items(data: Path, worlds: Path | None = None) -> list[Item]:
    """Return all items below a folder with the training files (`train/`, `squad/`, `hotpot/` and so on).

    Args:
        data: the folder.
        worlds: a folder of synthetic worlds, whose questions are added.

    Raises:
        UsageError: a file cannot be used, or none is there.
    """
    multi = _without_shared_gold([*_questions(data, MULTI_HOP_FILES)])
    found = [*_questions(data, SINGLE_FILES), *multi, *_claims(_file(data, "train/claims"))]
    found += _scientific(_file(data, "scifact/claims"), _file(data, "scifact/corpus"))
    if not found:
        raise UsageError(f"{data} contains no training files: it needs train/squad2.jsonl.gz and its siblings.")
    return found + (read_worlds(worlds) if worlds else [])


def read_comparisons(data: Path) -> Iterator[Item]:
    """Yield composed questions for training: about pages of training questions that are in no evaluation corpus."""
    multi = [*_questions(data, MULTI_HOP_FILES)]
    files = [path for name in MULTI_HOP if (path := _file(data, f"{name}/corpus"))]
    left_out = {line.title for path in files for line in lines(path, Titled)}
    held_back = {passage.text for item in multi if item.part != "train" for passage in item.gold}
    pages = {passage.title: passage for item in multi for passage in (*item.gold, *item.others)}
    chosen = [page for page in pages.values() if page.title not in left_out and page.text not in held_back]
    for at, question in enumerate(compose_questions(chosen)):
        yield Item(
            set=COMPARISONS,
            id=f"{COMPARISONS}-{at}",
            part="train",
            text=question.text,
            kind="span",
            gold=question.gold,
            answers=(question.answer,),
            others=question.others,
            facts=question.facts,
        )


def part_of(key: str, *, one_of: int = 20) -> Part:
    """Return the part of a passage or id: `report` and `tune` have a share of 1 / `one_of` each."""
    at = int(sha1(key.encode(), usedforsecurity=False).hexdigest(), 16) % one_of
    return "report" if at == 0 else "tune" if at == 1 else "train"


def _file(data: Path, name: str) -> Path | None:
    path = data / f"{name}.jsonl.gz"
    return path if path.is_file() else None


def _questions(data: Path, files: Iterable[tuple[str, str]]) -> Iterator[Item]:
    for file, name in files:
        path = _file(data, file)
        for line in lines(path, TrainingQuestion) if path else ():
            key, one_of = (line.paragraph, 20) if line.paragraph else (line.id, 10)
            # SQuAD 2.0's dev articles have most of the unanswerable questions: more of them are held back.
            one_of = 5 if name == "squad" and line.split == "dev" else one_of
            if (item := _item(line, name, part_of(key, one_of=one_of))).gold:
                yield item


def _item(line: TrainingQuestion, name: str, part: Part) -> Item:
    kind: Kind = "span" if line.answer else "none"
    answers = tuple(dict.fromkeys(each for each in (line.answer, *line.answers, *line.answer_aliases) if each))
    if line.answer in ("yes", "no"):
        kind, answers = ("yes" if line.answer == "yes" else "no"), ()
    passages = [(Evidence(title=each.title, text=each.text), each.is_supporting) for each in line.all()]
    return Item(
        set=name,
        id=line.id,
        part=part,
        text=line.question,
        kind=kind,
        gold=tuple(passage for passage, is_gold in passages if is_gold),
        answers=answers if line.answer else (),
        others=tuple(passage for passage, is_gold in passages if not is_gold),
        facts=tuple(fact.text for fact in (*line.supporting_facts, *line.evidence)),
    )


def read_worlds(folder: Path) -> list[Item]:
    """Return the questions of both editions of worlds, as `python -m training.worlds` writes them.

    All questions of a world belong to one part.

    Raises:
        UsageError: the folder contains no worlds.
    """
    files = sorted(folder.glob("*/training.jsonl"))
    if not files:
        raise UsageError(f"{folder} contains no worlds: write them with `python -m training.worlds`.")
    found = []
    for line in (line for file in files for line in lines(file, TrainingQuestion)):
        item = _item(line, WORLDS, part_of(line.id.rpartition("-q")[0], one_of=10))
        found.append(replace(item, answers=()) if line.type in _COMPUTED else item)
    return found


def _without_shared_gold(items: Sequence[Item]) -> list[Item]:
    held_back = {passage.text for item in items if item.part != "train" for passage in item.gold}
    return [
        item for item in items if item.part != "train" or not any(passage.text in held_back for passage in item.gold)
    ]


def _claims(file: Path | None) -> Iterator[Item]:
    for line in lines(file, _Claim) if file else ():
        relation = _RELATIONS.get(line.label)
        if relation is None or line.set in LEFT_OUT or not line.evidence:
            continue
        chosen = [line.evidence[at] for at in line.supporting[0]] if line.supporting else line.evidence
        yield Item(
            set=line.set,
            id=line.id,
            part=part_of(line.evidence[0]),
            text=line.claim,
            kind=relation,
            gold=(Evidence(title=line.title, text=" ".join(chosen)),),
        )


def _scientific(file: Path | None, corpus: Path | None) -> Iterator[Item]:
    abstracts = {
        line.id: Evidence(title=line.title, text=" ".join(line.abstract))
        for line in (lines(corpus, Abstract) if corpus else ())
    }
    for line in lines(file, ScientificClaim) if file else ():
        labels = {finding.doc_id: finding.label for finding in line.evidence}
        for doc in labels or line.cited_doc_ids:
            if doc in abstracts:
                yield Item(
                    set="scifact",
                    id=f"scifact-{line.id}-{doc}",
                    part=part_of(abstracts[doc].text),
                    text=line.claim,
                    kind=_RELATIONS[labels[doc]] if doc in labels else "not mentioned",
                    gold=(abstracts[doc],),
                )


def of_part(items: Iterable[Item], part: Part) -> list[Item]:
    """Return the items of one part."""
    return [item for item in items if item.part == part]
