"""Accuracy of the attribute predictor on questions that it was not trained on.

    python -m benchmarks.studies.attributes QUESTIONS...

Of a file with the benchmark's labels (CRAG: `query`, `domain`, `static_or_dynamic`) each question with its prediction
and the accuracies; of any other questions file how many questions are taken for dynamic, and how the domains come out.
Questions of multi-hop data sets ask for lasting facts: what is taken for dynamic there would go unanswered.
"""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.harness import options, rows
from sleuth.tools.search.vectors import make_embedder
from sleuth.tools.settings import Settings
from sleuth.tools.sources.question_attributes import FAST, Attributes
from sleuth.tools.sources.question_attributes.svm import SvmPredictor, packaged_svm


async def study(path: Path, predictor: SvmPredictor, limit: int) -> dict[str, Any]:
    asked = list(rows(path))[:limit]
    found = [(row, await predictor.predict(row.get("query") or row["question"])) for row in asked]
    if all("static_or_dynamic" in row for row in asked):
        return {"file": f"{path.parent.name}/{path.name}", **labelled(found)}
    dynamic = [row["question"] for row, each in found if each.dynamic]
    return {
        "file": f"{path.parent.name}/{path.name}",
        "questions": len(found),
        "dynamic": len(dynamic) / len(found),
        "domains": Counter(each.domain for _, each in found),
        "such as": dynamic[:5],
    }


def labelled(found: list[tuple[dict[str, Any], Attributes]]) -> dict[str, Any]:
    each = [
        {
            "question": row["query"],
            "domain": [row["domain"], predicted.domain],
            "dynamic": [row["static_or_dynamic"], predicted.dynamic],
        }
        for row, predicted in found
    ]
    return {
        "questions": len(found),
        "domain right": sum(row["domain"] == predicted.domain for row, predicted in found),
        "dynamic right": sum((row["static_or_dynamic"] in FAST) == predicted.dynamic for row, predicted in found),
        "each": each,
    }


async def main() -> None:
    parser = options(__doc__, "limit", limit=500)
    parser.add_argument("questions", type=Path, nargs="+")
    given = parser.parse_args()
    predictor = SvmPredictor(packaged_svm(), make_embedder(Settings()))
    print(json.dumps([await study(path, predictor, given.limit) for path in given.questions], indent=1))


if __name__ == "__main__":
    asyncio.run(main())
