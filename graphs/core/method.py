"""Declaration of a method, with which each method's module ends, and how it follows its paper, part by part."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from langgraph.graph import StateGraph
from pydantic import BaseModel, ValidationError

from sleuth.graphs.core.answer import Graph
from sleuth.graphs.core.context import Ablation, Context, MethodSettings, Stage
from sleuth.graphs.core.state import RunState
from sleuth.tools.checked_data import read_toml

if TYPE_CHECKING:
    from sleuth.graphs.core.approval import Reply

CHAT: Final = "chat"
SURVEY: Final = "survey"
REPORT: Final = "report"
MODELLESS_METHOD: Final = "reader"
"""The method that calls no model: the default without a model server."""

PartStatus = Literal["as published", "our reading", "deviates", "not implemented"]


class PaperPart(BaseModel, frozen=True, extra="forbid"):
    """One part of a method's paper, and what sleuth does instead or in the same way under `profile=paper`.

    `part` describes it in a few words, `source` names the section, equation or table. `our reading` is an
    interpretation where the paper leaves something open; `note` has it, and for `deviates` and `not implemented`
    what differs and why. `code` has the places that implement it, as dotted names below the package `sleuth` or in
    `training`, and `settings` the names of the settings that control it.
    """

    part: str
    source: str
    status: PartStatus
    code: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    note: str = ""


@cache
def read_parts(method: str) -> Mapping[str, PaperPart]:
    """Return the parts of a method's paper by their keys, followed by those that all published methods share.

    They are in the files `fidelity.toml` of the method's folder and of the folder above; without the first, none.
    """
    shared = Path(__file__).parents[1] / "methods" / "fidelity.toml"
    file = shared.parent / method.replace("-", "_") / shared.name
    return read_toml(file, dict[str, PaperPart]) | read_toml(shared, dict[str, PaperPart]) if file.exists() else {}


def summarize_update(update: Mapping[str, Any]) -> list[str]:
    """Return lines that describe the fields of an update that several methods share; for a terminal or a chat.

    A method with further fields adds lines of its own.
    """
    support = (update.get("verdict") or {}).get("support")
    checked = [f"support of the answer: {support['score']:.2f}"] if support else []
    return [*_lines(update), *checked]


def _lines(update: Mapping[str, Any]) -> Iterator[str]:
    for key, step in (update.get("plan") or {}).items():
        yield f"{key}. {step['question']}"
    for round in (update.get("rounds") or {}).values():
        yield f"passages: {len(round['passages'])}" if round["passages"] else f"looks up: {round['query']}"
    for key, note in (update.get("notes") or {}).items():
        if note is None:
            yield f"taken back: {key}"
            continue
        where = f" [{', '.join(note['passages'])}]" if note["passages"] else ""
        remark = f" ({note['remark']})" if note.get("remark") else ""
        yield f"found: {note['finding'] or '–'}{where}{remark}"
    if "evidence" in update:
        yield f"passages: {len(update['evidence'])}"
    for attempt in (update.get("attempts") or {}).values():
        yield f"answer tried: {attempt['answer'] or '–'}"
    if update.get("halted"):
        yield "the budget is spent"


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """One reasoning method: a graph from `question` to `verdict`.

    `line` summarizes the method and `when` describes its use. `calls` is the typical number of model calls: fewest to
    most on the example questions, and on two hops. `docs/benchmarks/answers.md` has them by number of hops; empty where
    it was not measured. A `baseline` is included for comparison. A method that `delegates` lets other methods answer in
    sub-runs, which check their answers. One that `needs_checker` cannot run without the evidence checker, one whose
    `needs_model` is False runs without a model server. `start_from_plan` returns the update that the node `plan` would
    make of given steps, for its settings; None if a method has no such plan. `answers` is the node whose model calls
    write the answer: their text is streamed as that of a message. `approval` is the type of the reply to its request
    for approval.

    `summarize_update` describes the update of a node in lines. `read_graph` and `read_table` return the question's
    graph and the table that a state contains, for the answer; by default there are none.
    """

    name: str
    line: str
    paper: str
    when: str
    graph: Callable[[], StateGraph[Any, Context, Any, Any]]
    settings: type[MethodSettings]
    calls: str = ""
    answers: str = "answer"
    baseline: bool = False
    needs_model: bool = True
    needs_checker: bool = False
    delegates: bool = False
    approval: "type[Reply[Any]] | None" = None
    start_from_plan: Callable[[dict[str, Any], Any], Mapping[str, Any]] | None = None
    summarize_update: Callable[[Mapping[str, Any]], list[str]] = summarize_update
    read_graph: Callable[[Mapping[str, Any]], Graph | None] = lambda state: None
    read_table: Callable[[Mapping[str, Any]], dict[str, Any] | None] = lambda state: None

    @property
    def parts(self) -> Mapping[str, PaperPart]:
        """The parts of the method's paper by their keys; a method without a published paper has none."""
        return read_parts(self.name)

    @property
    def state(self) -> type[RunState]:
        """The type of the graph's state."""
        return self.graph().state_schema

    def nodes(self) -> list[str]:
        """Return the graph's nodes in the order of the method."""
        return list(self.graph().nodes)

    def ablations(self) -> dict[str, dict[str, Any]]:
        """Return the settings that switch off or replace a part of the method, as its paper does, by their names."""
        variants: dict[str, dict[str, Any]] = {}
        for name in self.settings.annotated(Ablation):
            setting = self.settings.model_fields[name]
            others = [value for value in get_args(setting.annotation) if value != setting.default]
            variants |= {f"with {name}={value}": {name: value} for value in others}
            if not others:
                variants[f"without {name}"] = {name: False}
        return variants

    def stages(self) -> dict[str, dict[str, Any]]:
        """Return the settings of each stage of the method's cumulative ablation, by its name; often there are none."""
        return {
            f"up to {value}": {name: value}
            for name in self.settings.annotated(Stage)
            for choice in get_args(self.settings.model_fields[name].annotation)
            for value in get_args(choice)
        }


def describe_errors(error: ValidationError) -> str:
    """Return the errors of settings, each after the setting's name."""
    faults = [(fault["loc"], fault["msg"].lower().removeprefix("value error, ")) for fault in error.errors()]
    return "; ".join(f"{place[0]}: {message}" if place else message for place, message in faults)
