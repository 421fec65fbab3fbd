"""Reports over the example corpus: how many sentences have a valid citation, and how well their sources support them.

    python -m benchmarks.report [--home FOLDER] [--method plain-rag]

The model is that of SLEUTH_MODEL_URL. A citation is valid if the document has its quote at its place. Support is read
by the evidence checker from the cited passages, of which the report's own review keeps 0.5 and more.
"""

import argparse
import asyncio
import statistics
import tempfile
from pathlib import Path

from benchmarks.harness import EXAMPLES
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.studio.client.sleuth import Sleuth, open_sleuth
from sleuth.tools.evidence_checker import Evidence, EvidenceChecker
from sleuth.tools.settings import Settings

QUESTIONS = [
    "What is known about Odo Pellarick?",
    "What happened to the Dunvarrow Copper Company?",
    "How did the Reeves of Ullavar rule?",
    "Which ships are described, and what became of them?",
    "What is known about the Pellowrig Light?",
    "What damage did the Great Gale of 1903 do?",
    "What is known about the Hollin Valley Railway?",
    "Who was Linnet Marchbane, and what did she do in office?",
    "What is known about the lakes and mountains of the islands?",
    "Which fires and disasters are reported?",
]


async def measure(sleuth: Sleuth, answer: Answer, checker: EvidenceChecker) -> tuple[int, int, list[float]]:
    """Return the sentences of a report, how many have only valid citations, and the support of each."""
    citations: dict[int, list[Evidence]] = {}
    wrong: set[int] = set()
    for each in answer.citations:
        text = (await sleuth.collection.document(each["document"])).text
        for end in each.get("sentence_ends", []):
            citations.setdefault(end, []).append(Evidence(title=each["title"], text=each["quote"]))
            if text[each["start"] : each["end"]] != each["quote"]:
                wrong.add(end)
    support, begin = [], 0
    for end in sorted(citations):
        sentence = answer.text[begin:end].rpartition("\n")[2].strip()
        support.append(checker.check(sentence, citations[end]).supported)
        begin = end
    sentences = len(answer.notes)
    return sentences, len(citations.keys() - wrong), support


async def main(home: Path, method: str) -> None:
    """Write the reports and print a line for each, and the sums."""
    settings, checker = Settings(home=home), EvidenceChecker.load()
    await ingest([EXAMPLES / "corpus"], settings=settings)
    sentences, valid, support = 0, 0, list[float]()
    async with open_sleuth(settings) as sleuth:
        for question in QUESTIONS:
            answer = await sleuth.ask(question, method="report", values={"method": method})
            counts = await measure(sleuth, answer, checker)
            sentences, valid, support = sentences + counts[0], valid + counts[1], support + counts[2]
            left_out = sum(each.startswith("left out") for each in answer.warnings)
            print(
                f"{answer.status}: {counts[0]} sentences, {counts[1]} with valid citations, {left_out} left out, "
                f"{answer.cost['calls']} calls, {answer.seconds:.0f} s: {question}",
                flush=True,
            )
    share = f"{valid / sentences:.1%}" if sentences else "none"
    print(f"{sentences} sentences, valid citations {share}, mean support {statistics.fmean(support or [0]):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--method", default="plain-rag")
    given = parser.parse_args()
    asyncio.run(main(given.home or Path(tempfile.mkdtemp()), given.method))
