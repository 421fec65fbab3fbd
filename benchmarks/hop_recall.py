"""Search hop by hop with the gold sub-questions: is each hop's passage found?

    python benchmarks/hop_recall.py QUESTIONS... [--mode graph] [-k 5]

QUESTIONS have decompositions with gold ids; their corpus is in the collection that SLEUTH_COLLECTION names. Each hop's
question has earlier answers filled in, names them as entities, and passes on the passages found so far as seen. A hop
counts as found if its gold passage is among its first k, or was seen before; alone, if it is among its first k without
knowing of any other hop.
"""

import argparse
import asyncio
import json
import re
from pathlib import Path

import numpy as np

from sleuth.studio.evaluation.questions import GoldQuestion, read_questions
from sleuth.tools.library import Library
from sleuth.tools.retriever import Mode, Query
from sleuth.tools.settings import Settings

ANSWER = re.compile(r"#(\d+)")
BOOTSTRAPS = 1000


async def hops_found(library: Library, question: GoldQuestion, mode: Mode, k: int) -> list[tuple[bool, bool]]:
    """For each hop whether it was found with what the earlier ones left, and whether alone."""
    answers: list[str] = []
    seen: set[str] = set()
    found: list[tuple[bool, bool]] = []
    for hop in question.decomposition:
        named = [int(number) - 1 for number in ANSWER.findall(hop.question)]
        text = ANSWER.sub(lambda match: answers[int(match[1]) - 1], hop.question).replace(">>", " ")
        entities = tuple(dict.fromkeys(answers[at] for at in named))
        known = await library.search(Query(text=text, k=k, mode=mode, entities=entities, seen=frozenset(seen)))
        alone = await library.search(Query(text=text, k=k, mode=mode))
        seen |= {hit.passage.id for hit in known}
        found.append((hop.gold_id in seen, hop.gold_id in {hit.passage.id for hit in alone}))
        answers.append(hop.answer)
    return found


def interval(by_question: list[list[bool]]) -> list[float]:
    """Mean over hops in per cent, with a 95 % bootstrap interval over questions."""
    rng = np.random.default_rng(0)
    means = [
        np.mean([found for at in rng.integers(len(by_question), size=len(by_question)) for found in by_question[at]])
        for _ in range(BOOTSTRAPS)
    ]
    whole = np.mean([found for own in by_question for found in own])
    return [round(100 * float(value), 1) for value in (whole, *np.quantile(means, [0.025, 0.975]))]


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("questions", nargs="+", type=Path)
    parser.add_argument("--mode", default="graph")
    parser.add_argument("-k", type=int, default=5)
    wanted = parser.parse_args()
    files = read_questions(wanted.questions)
    questions = [question for file in files for question in file.questions if question.decomposition]
    settings = Settings()
    async with await Library.open(settings) as library:
        found = [await hops_found(library, question, wanted.mode, wanted.k) for question in questions]
    result = {
        "mode": wanted.mode,
        "ranker": settings.ranker,
        "k": wanted.k,
        "questions": len(questions),
        "hops": sum(map(len, found)),
        "recall_over_hops": interval([[with_known for with_known, _ in own] for own in found]),
        "each_hop_alone": interval([[alone for _, alone in own] for own in found]),
        "all_hops": interval([[all(with_known for with_known, _ in own)] for own in found]),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    asyncio.run(main())
