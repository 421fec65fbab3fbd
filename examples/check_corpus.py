"""Check the example corpus and its questions against each other (standard library only).

    python examples/check_corpus.py

Prints one line per problem and exits with status 1, or prints a summary if there is none.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
SOURCES = HERE / "sources"
TYPES = {
    "one_hop": 6, "two_hop": 8, "three_hop": 6, "four_hop": 6, "comparison": 4, "unanswerable": 6, "false_premise": 4
}  # fmt: skip
HOPS = {"one_hop": 1, "two_hop": 2, "three_hop": 3, "four_hop": 4}
CHAINS = ("two_hop", "three_hop", "four_hop")
NO_ANSWER = ("unanswerable", "false_premise")


def read(path: Path) -> str:
    """Return the text of an article; for a PDF or DOCX, that of its Markdown source."""
    source = SOURCES / f"{path.stem}.md" if path.suffix in {".pdf", ".docx"} else path
    text = source.read_text(encoding="utf-8")
    if path.suffix == ".html":
        text = html.unescape(re.sub(r"<style.*?</style>|<[^>]+>", " ", text, flags=re.DOTALL))
    return " ".join(text.replace("*", "").split()).casefold()


def title(path: Path) -> str:
    """Return the name of an article: its heading without a note in parentheses."""
    source = SOURCES / f"{path.stem}.md" if path.suffix in {".pdf", ".docx"} else path
    text = source.read_text(encoding="utf-8")
    found = re.search(r"<title>(.*?)</title>", text) or re.match(r"# (.*)", text)
    name = found[1] if found else path.stem.removeprefix("rules-of-the-").replace("-", " ")
    return re.sub(r"\s*\(.*\)", "", html.unescape(name)).casefold()


def orphans(texts: dict[str, str]) -> list[str]:
    """Return a problem for each article that no other article mentions."""
    names = {name: title(CORPUS / name) for name in texts}
    return [
        f"{name}: mentioned in no other article"
        for name, label in names.items()
        if not any(label in text for other, text in texts.items() if other != name and names[other] != label)
    ]


def check_hops(item: dict[str, Any], texts: dict[str, str]) -> list[str]:
    """Return missing gold documents, and answers of hops that their gold document does not contain."""
    missing = [f"no such article {gold}" for gold in item["gold_ids"] if gold not in texts]
    for hop in item["decomposition"]:
        if hop["gold_id"] not in item["gold_ids"]:
            missing.append(f"{hop['gold_id']} is not among the gold ids")
        elif hop["answer"].casefold() not in texts.get(hop["gold_id"], ""):
            missing.append(f"'{hop['answer']}' is not in {hop['gold_id']}")
    return missing


def check_chain(item: dict[str, Any], texts: dict[str, str]) -> list[str]:
    """Return the articles of a chain that reveal an earlier hop.

    The last article must name no earlier subject, and no article the subject of the hop before.
    """
    subjects = [re.sub(r"\s*\(.*\)", "", triple[0]).casefold() for triple in item["evidence_triples"]]
    golds = [hop["gold_id"] for hop in item["decomposition"]]
    wrong = [f"{golds[-1]} names '{name}'" for name in subjects[:-1] if name in texts[golds[-1]]]
    pairs = zip(subjects, golds[1:], strict=False)
    return wrong + [f"{gold} names '{name}', the hop before" for name, gold in pairs if name in texts[gold]]


def check_shape(item: dict[str, Any]) -> list[str]:
    """Return the fields that do not match the type of the question."""
    kind, hops = item["type"], item["decomposition"]
    wrong = []
    if len(hops) != HOPS.get(kind, len(hops)):
        wrong.append(f"{len(hops)} hops for {kind}")
    if (kind in NO_ANSWER) != (item["answer"] == ""):
        wrong.append("answer does not agree with the type")
    if (kind == "false_premise") != ("premise" in item):
        wrong.append("premise does not agree with the type")
    if kind in HOPS and hops[-1]["answer"] != item["answer"]:
        wrong.append("the last hop does not give the answer")
    return wrong


def main() -> int:
    """Run every check."""
    texts = {path.name: read(path) for path in sorted(CORPUS.iterdir()) if path.is_file()}
    items = [json.loads(line) for line in (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    problems = orphans(texts)
    if not 60 <= len(texts) <= 100:
        problems.append(f"{len(texts)} articles")
    if Counter(item["type"] for item in items) != Counter(TYPES) or len({item["id"] for item in items}) != 40:
        problems.append("the questions are not 40 of the expected types with distinct ids")
    for item in items:
        found = check_shape(item) + check_hops(item, texts)
        if not found and item["type"] in CHAINS:
            found = check_chain(item, texts)
        problems += [f"{item['id']}: {problem}" for problem in found]
    print("\n".join(problems) if problems else f"{len(texts)} articles, {len(items)} questions, no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
