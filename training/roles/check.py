"""Measure how a served model performs its roles: `python -m training.roles.check EXAMPLES`.

Held-out examples, which were not used for tuning, are sent as in production: same prompt, same guided decoding. Replies
are scored by prompt, before any repair or filter.
"""

import asyncio
import json
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

from sleuth.agents.formatting import parse_sources
from sleuth.agents.llm.client import LLMClient
from sleuth.agents.model import Message, Reply, Request, first_token_probability
from sleuth.agents.model_calls.output_parsing import Unparsable, parse
from sleuth.agents.role import Role
from sleuth.agents.roles import judging, planning, reading, reasoning
from sleuth.graphs.core.answer import Threshold
from sleuth.graphs.core.thresholds import store_threshold as keep_threshold
from sleuth.graphs.evidence.text_spans import find_quote
from sleuth.studio.cli.app import run_cli
from sleuth.studio.evaluation.calibration import fit
from sleuth.studio.evaluation.scoring import f1
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings
from training.evidence_checker import measure
from training.roles.tuning.batches import read_examples

ROLES: dict[str, Role[Any, Any]] = {
    role.prompt: role
    for role in (
        *(reading.READ, reading.DRAFT, planning.PLAN, planning.REFINE, judging.REVIEW, reading.ANSWER),
        *(planning.EXPAND, planning.FUSE, reading.AGGREGATE, judging.VERIFY),
        *(reasoning.TAKE_STEP, reasoning.TAKE_LAST_STEP, reasoning.INTEGRATE),
        *(reasoning.REASON, reasoning.MONITOR, reasoning.ENTITIES, reasoning.INFER, reasoning.REQUERY),
        *(judging.CONSISTENCY, judging.EVIDENCE, judging.RELEVANCE, judging.ATTRIBUTION, judging.SUPPORT),
        *(planning.BEGIN, planning.NEXT_WITH_FINDING, reading.ANSWER_FROM_FACTS, reading.EXTRACT),
    )
}
"""What is learned, by prompt."""
_LEAST = 1e-9


class Checked(TypedDict):
    """A reply compared with the expected one.

    `citations` and `resolved` count quotes, and quotes found in the source that they name; `p_yes` is None if the
    prompt is not a yes-or-no question, `f1` (at most 1) if there is no answer to compare.
    """

    prompt: str
    valid: bool
    exact: bool
    f1: float | None
    citations: int
    resolved: int
    p_yes: float | None
    yes: bool


def score_reply(row: Mapping[str, Any], reply: Reply) -> Checked:
    """Return the score of a reply to an example; a truncated reply is not valid."""
    role = ROLES[row["prompt"]]
    said = _read(role, reply["text"], cut_off=reply["finish"] == "length")
    wanted = _read(role, row["reply"]) or {}
    quotes = list(_quotes(said))
    sources = dict(parse_sources(row["messages"][-1]["content"]))
    asked = role.choices is not None or row["reply"] in ("Yes", "No")
    return Checked(
        prompt=row["prompt"],
        valid=said is not None,
        exact=said == wanted,
        f1=f1((said or {}).get("answer", ""), [wanted["answer"]]) if "answer" in wanted else None,
        citations=len(quotes),
        resolved=sum(
            quote["source"] in sources and find_quote(quote["quote"], sources[quote["source"]].text) is not None
            for quote in quotes
        ),
        p_yes=first_token_probability(reply)[0] if asked and reply["logprobs"] else None,
        yes=row["reply"] == "Yes",
    )


def _read(role: Role[Any, Any], text: str, *, cut_off: bool = False) -> dict[str, Any] | None:
    """Return the fields of a reply, of a plain one its "text"; None where it is not valid."""
    try:
        output = parse(text, role.output, choices=role.choices, cut_off=cut_off)
    except Unparsable:
        return None
    return output.model_dump(mode="json") if isinstance(output, BaseModel) else {"text": output}


def _quotes(said: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - JSON
    """Yield every citation at any depth, except empty ones, which guided decoding requires if nothing can be cited."""
    if isinstance(said, dict):
        if said.keys() >= {"source", "quote"} and said["quote"]:
            yield said
        for value in said.values():
            yield from _quotes(value)
    elif isinstance(said, list):
        for value in said:
            yield from _quotes(value)


def table(checked: Sequence[Checked]) -> dict[str, dict[str, float | int | None]]:
    """Return shares and numbers of examples, by prompt and in total."""
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
    """Return how often Yes was right in each tenth of P(yes), the calibration error, and the share of right."""
    asked = [(row["p_yes"], row["yes"]) for row in checked if row["p_yes"] is not None]
    return {**measure.reliability(asked), "right": _mean([(chance > 0.5) == yes for chance, yes in asked])}


def thresholds(checked: Sequence[Checked]) -> dict[str, dict[str, Any]]:
    """Return, for each yes-or-no prompt, how well P(yes) predicts Yes, and the best threshold.

    The area under the curve has the p-value of its difference from chance, 0.5. Prompts with only one kind of answer
    are omitted.
    """
    own: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for row in checked:
        if row["p_yes"] is not None:
            own[row["prompt"]][not row["yes"]].append(1 / max(row["p_yes"], _LEAST))  # perplexity of the token Yes
    fits = {prompt: fit(right, wrong) for prompt, (right, wrong) in sorted(own.items()) if right and wrong}
    return {
        prompt: {
            "examples": each.right + each.wrong,
            "auroc": round(each.auroc, 4),
            "p": round(each.p, 4),
            "is_predictive": each.is_predictive,
            "threshold": round(1 / each.threshold, 4),
        }
        for prompt, each in fits.items()
    }


async def check(
    rows: Sequence[Mapping[str, Any]], settings: Settings, done: Callable[[], None]
) -> tuple[list[Checked], str]:
    """Send every example to the configured server; call `done` after each reply.

    Returns the scores and the name of the model that answers yes-or-no prompts.
    """

    async def one(row: Mapping[str, Any], client: LLMClient) -> Checked:
        role = ROLES[row["prompt"]]
        sent = tuple(Message(role=each["role"], content=each["content"]) for each in row["messages"])
        request = Request(
            call_id=row["question"], role=role.name, prompt=role.prompt, messages=sent, input={},
            sampling=role.sampling, schema=role.schema(), choices=role.choices,
        )  # fmt: skip
        reply = await client.call(request)
        done()
        return score_reply(row, reply)

    async with LLMClient.open(settings) as client:
        checked = await asyncio.gather(*(one(row, client) for row in rows))
        return list(checked), client.name_of(judging.CONSISTENCY.name)


def consistency(found: Mapping[str, Mapping[str, Any]], model: str) -> Threshold | None:
    """Return RetroRAG's threshold for a model; None if its P(yes) is not predictive."""
    own = found.get(judging.CONSISTENCY.prompt)
    if own is None or not own["is_predictive"]:
        return None
    by = f"fitted for {model} on {own['examples']} pairs of answers ({datetime.now(UTC).date().isoformat()})"
    return Threshold(value=own["threshold"], by=by)


def main(
    examples: Annotated[Path, typer.Argument(help="`examples.jsonl`, as roles.data.examples has made it.")],
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
        keep_threshold(settings.home, model, judging.CONSISTENCY.prompt, threshold)
    typer.echo(json.dumps({"prompts": table(checked), "yes_or_no": sure}, indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
