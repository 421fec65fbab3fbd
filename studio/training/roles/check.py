"""How a served model plays its roles: `python -m sleuth.studio.training.roles.check EXAMPLES`.

Held-out examples, which tuning has not learned from, are sent as in use: same prompt, same guided decoding. What comes
back is counted by prompt before anything repairs or filters it.
"""

import asyncio
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from typing_extensions import TypedDict

from sleuth.agents.formatting import Source
from sleuth.agents.formatting.sources import in_prompt
from sleuth.agents.llm.client import Gateway
from sleuth.agents.model import Message, Reply, Request
from sleuth.agents.model_calls import Unparsable, first_token_probability, parse
from sleuth.agents.role import Role
from sleuth.agents.roles.judging import evaluator, reviewer, verifier
from sleuth.agents.roles.planning import expander, planner, refiner
from sleuth.agents.roles.planning import step_merger as fuser
from sleuth.agents.roles.planning import subqueries as subquery
from sleuth.agents.roles.reading import aggregator, answerer, drafter, extractor, reader
from sleuth.agents.roles.reasoning import evidence_discovery as detective
from sleuth.agents.roles.reasoning import path_answerer as integrator
from sleuth.agents.roles.reasoning import reasoner
from sleuth.graphs.core import Threshold
from sleuth.graphs.core import keep as keep_threshold
from sleuth.graphs.evidence import locate
from sleuth.studio.cli.app import run_cli
from sleuth.studio.evaluation.calibration import Measured
from sleuth.studio.evaluation.calibration.fit import fit
from sleuth.studio.evaluation.scoring import f1
from sleuth.studio.training.roles.tuning import read_examples
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings

ROLES: dict[str, Role[Any, Any]] = {
    role.prompt: role
    for role in (
        *(reader.READ, drafter.DRAFT, planner.PLAN, refiner.REFINE, reviewer.REVIEW, answerer.ANSWER),
        *(expander.EXPAND, fuser.FUSE, aggregator.AGGREGATE, verifier.VERIFY),
        *(integrator.TAKE_STEP, integrator.TAKE_LAST_STEP, integrator.INTEGRATE),
        *(reasoner.REASON, reasoner.MONITOR, detective.ENTITIES, detective.INFER, detective.REQUERY),
        *(evaluator.CONSISTENCY, evaluator.EVIDENCE, evaluator.RELEVANCE, evaluator.ATTRIBUTION, evaluator.SUPPORT),
        *(subquery.BEGIN, subquery.NEXT_WITH_FINDING, answerer.ANSWER_FROM_FACTS, extractor.EXTRACT),
    )
}
"""What is learned, by prompt."""
BINS = 10
_LEAST = 1e-9


class Checked(TypedDict):
    """One reply beside the one that was wanted.

    `citations` and `resolved` count quotes, and those whose words stand in the source that they name; `p_yes` is None
    where nobody asks yes or no, `f1` (of 1) where there is no answer to compare.
    """

    prompt: str
    valid: bool
    exact: bool
    f1: float | None
    citations: int
    resolved: int
    p_yes: float | None
    yes: bool


def judged(row: Mapping[str, Any], reply: Reply) -> Checked:
    """What is to be said of a reply to an example; one that was cut off is not valid."""
    role = ROLES[row["prompt"]]
    said = _read(role, reply["text"], cut_off=reply["finish"] == "length")
    wanted = _read(role, row["reply"]) or {}
    quotes = list(_quotes(said))
    sources = dict(in_prompt(row["messages"][-1]["content"]))
    asked = role.choices is not None or row["reply"] in ("Yes", "No")
    return Checked(
        prompt=row["prompt"],
        valid=said is not None,
        exact=said == wanted,
        f1=f1((said or {}).get("answer", ""), [wanted["answer"]]) if "answer" in wanted else None,
        citations=len(quotes),
        resolved=sum(_resolves(quote, sources) for quote in quotes),
        p_yes=first_token_probability(reply)[0] if asked and reply["logprobs"] else None,
        yes=row["reply"] == "Yes",
    )


def _read(role: Role[Any, Any], text: str, *, cut_off: bool = False) -> dict[str, Any] | None:
    """The fields of a reply, of a plain one its "text"; None where it is not valid."""
    try:
        output = parse(text, role.output, choices=role.choices, cut_off=cut_off)
    except Unparsable:
        return None
    return output.model_dump(mode="json") if isinstance(output, BaseModel) else {"text": output}


def _quotes(said: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - JSON
    """Every citation, however deep; an empty one is none: guided decoding asks for it where nothing can be cited."""
    if isinstance(said, dict):
        if said.keys() >= {"source", "quote"} and said["quote"]:
            yield said
        for value in said.values():
            yield from _quotes(value)
    elif isinstance(said, list):
        for value in said:
            yield from _quotes(value)


def _resolves(quote: Mapping[str, Any], sources: Mapping[int, Source]) -> bool:
    source = sources.get(quote["source"])
    return source is not None and locate(quote["quote"], source.text) is not None


def table(checked: Sequence[Checked]) -> dict[str, dict[str, float | int | None]]:
    """By prompt, and over all: shares of 1, with how many examples they are of."""
    own: dict[str, list[Checked]] = defaultdict(list)
    for each in checked:
        own[each["prompt"]].append(each)
    return {name: _line(rows) for name, rows in [*sorted(own.items()), ("all", list(checked))]}


def _line(rows: Sequence[Checked]) -> dict[str, float | int | None]:
    citations = sum(row["citations"] for row in rows)
    return {
        "examples": len(rows),
        "valid": _mean([row["valid"] for row in rows]),
        "exact": _mean([row["exact"] for row in rows]),
        "f1": _mean([row["f1"] for row in rows if row["f1"] is not None]),
        "citations": citations,
        "resolved": round(sum(row["resolved"] for row in rows) / citations, 4) if citations else None,
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(mean(values), 4) if values else None


def reliability(checked: Sequence[Checked]) -> dict[str, Any]:
    """Of what was asked by yes or no: by tenths of P(yes) how often Yes was right, and the expected calibration error.

    The error is the mean difference of both over the tenths, weighed by their examples (Naeini et al., 2015).
    """
    asked = [(row["p_yes"], row["yes"]) for row in checked if row["p_yes"] is not None]
    tenths: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for chance, yes in asked:
        tenths[min(BINS - 1, math.floor(chance * BINS))].append((chance, yes))
    lines = [
        {
            "from": at / BINS,
            "examples": len(own),
            "p_yes": round(mean(chance for chance, _ in own), 4),
            "yes": round(mean(yes for _, yes in own), 4),
        }
        for at, own in sorted(tenths.items())
    ]
    error = sum(line["examples"] * abs(line["p_yes"] - line["yes"]) for line in lines) / len(asked) if asked else None
    right = _mean([(chance > 0.5) == yes for chance, yes in asked])
    return {"examples": len(asked), "right": right, "calibration_error": error and round(error, 4), "tenths": lines}


def thresholds(checked: Sequence[Checked]) -> dict[str, dict[str, Any]]:
    """By prompt that is asked by yes or no: how well P(yes) tells the one from the other, and where it parts them best.

    The area under the curve has its 95 % interval; 0.5 is what chance gives. Prompts with one kind only are left out.
    """
    own: dict[str, list[Measured]] = defaultdict(list)
    for row in checked:
        if row["p_yes"] is not None:
            perplexity = 1 / max(row["p_yes"], _LEAST)  # of a reply of one token, the Yes
            asked = Measured(question="", answer="Yes", perplexity=perplexity, right=row["yes"])
            own[row["prompt"]].append(asked)
    found: dict[str, dict[str, Any]] = {}
    for prompt, measured in sorted(own.items()):
        if 0 < sum(each.right for each in measured) < len(measured):
            fitted = fit(measured)
            found[prompt] = {
                "examples": len(measured),
                "auroc": round(fitted.auroc, 4),
                "interval": (round(fitted.interval[0], 4), round(fitted.interval[1], 4)),
                "threshold": round(1 / fitted.threshold, 4),
            }
    return found


async def check(
    rows: Sequence[Mapping[str, Any]], settings: Settings, done: Callable[[], None]
) -> tuple[list[Checked], str]:
    """Sends every example to the server that the settings name; `done` hears of each that has come back.

    Returns what is to be said of each, and the name of the model that judges yes or no.
    """

    async def one(row: Mapping[str, Any], gateway: Gateway) -> Checked:
        reply = await gateway.call(_request(row))
        done()
        return judged(row, reply)

    async with Gateway.open(settings) as gateway:
        checked = await asyncio.gather(*(one(row, gateway) for row in rows))
        return list(checked), gateway.name_of(evaluator.CONSISTENCY.name)


def _request(row: Mapping[str, Any]) -> Request:
    role = ROLES[row["prompt"]]
    sent = tuple(Message(role=each["role"], content=each["content"]) for each in row["messages"])
    return Request(
        call_id=row["question"], role=role.name, prompt=role.prompt, messages=sent, input={}, sampling=role.sampling,
        schema=role.schema(), choices=role.choices,
    )  # fmt: skip


def consistency(found: Mapping[str, Mapping[str, Any]], model: str) -> Threshold | None:
    """RetroRAG's threshold for a model; None where its probability of yes tells nothing."""
    own = found.get(evaluator.CONSISTENCY.prompt)
    if own is None or own["interval"][0] <= 0.5:
        return None
    by = f"fitted for {model} on {own['examples']} pairs of answers ({datetime.now(UTC).date().isoformat()})"
    return Threshold(value=own["threshold"], by=by)


def main(
    examples: Annotated[Path, typer.Argument(help="`examples.jsonl`, as roles.examples has made it.")],
    *,
    limit: Annotated[int | None, typer.Option(help="Held-out examples to send; default: all.")] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep RetroRAG's threshold for this model in SLEUTH_HOME.")
    ] = False,
) -> None:
    """Print how the model at SLEUTH_MODEL_URL plays the roles, as JSON."""
    _, held_out = read_examples(examples)
    rows = [row for row in held_out if row["prompt"] in ROLES][:limit]
    if not rows:
        raise UsageError(f"None of the examples in {examples} is held out: there is nothing to check with.")
    settings = Settings()
    with typer.progressbar(length=len(rows), label="Asking", file=sys.stderr) as bar:
        checked, model = asyncio.run(check(rows, settings, lambda: bar.update(1)))
    sure = {**reliability(checked), "by_prompt": thresholds(checked)}
    if keep and (threshold := consistency(sure["by_prompt"], model)):
        keep_threshold(settings.home, model, evaluator.CONSISTENCY.prompt, threshold)
    typer.echo(json.dumps({"prompts": table(checked), "yes_or_no": sure}, indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
