"""Settings of the hybrid system, and the stages of its cumulative ablation (table 2 of the paper)."""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from sleuth.graphs.core.context import Ablation, CheckedSettings, InPaper, Stage
from sleuth.tools.search import Mode

Rung = Literal[
    "llm", "rag", "chunks", "refusal", "attributes", "tables", "calculator", "reasoning", "premise", "recall", "full"
]
"""The stages of table 2: each but the first switches on one more part, in the order of the settings that do."""


class Settings(CheckedSettings):
    """Settings of `--set`; those marked "ours" go beyond the paper and are off under `profile=paper`."""

    rung: Annotated[Rung | None, Stage()] = Field(
        default=None, description="the system as far as it was built: what comes later is off"
    )
    retrieve: Annotated[bool, Ablation()] = Field(default=True, description="search pages or the collection")
    sentences: Annotated[bool, Ablation()] = Field(
        default=True, description="pages in chunks of sentences; off: in windows"
    )
    refuse: Annotated[bool, Ablation()] = Field(default=True, description="it may answer that it does not know")
    attributes: Annotated[bool, Ablation()] = Field(default=True, description="predict domain, and static or dynamic")
    tables: Annotated[bool, Ablation()] = Field(default=True, description="show tables too")
    calculate: Annotated[bool, Ablation()] = Field(default=True, description="work out expressions from what was found")
    outline: Annotated[bool, Ablation()] = Field(default=True, description="reason along an outline")
    false_premise: Annotated[bool, Ablation()] = Field(
        default=True, description="with the outline: look for a false premise"
    )
    recall: Annotated[bool, Ablation()] = Field(
        default=True, description="what the model knows by itself is a reference"
    )
    graph: Annotated[bool, Ablation()] = Field(default=True, description="ask the knowledge graph, where there is one")
    predictor: Annotated[Literal["svm", "in_context"], InPaper("in_context")] = Field(
        default="svm", description="of attributes: an SVM over embeddings, or votes of the model (paper)"
    )
    votes: int = Field(default=5, ge=1, le=25, description="of the model for each attribute")
    fresh: bool = Field(default=False, description="ours: sources are up to date, dynamic questions are answered")
    asked_at: str = Field(default="", max_length=60, description="when the question is asked; default: today (UTC)")
    chunks: int = Field(default=10, ge=1, le=100, description="texts to show")
    truncate: Annotated[bool, InPaper(True)] = Field(
        default=False, description="sentences of pages end after 200 characters (paper: true)"
    )
    mode: Annotated[Mode, InPaper("dense")] = Field(default="graph", description="how to search (paper: dense)")
    expressions: int = Field(default=5, ge=1, le=20, description="samples of an expression")
    answers: Annotated[int, InPaper(5)] = Field(
        default=1, ge=1, le=20, description="samples of the answer, of which the most frequent counts (paper: 5)"
    )
    route: Literal["rules", "functions"] = Field(
        default="rules", description="to the knowledge graph: entities and rules, or function calls by the model"
    )
    max_table_characters: int = Field(default=4000, ge=0, le=100_000, description="of all tables shown")
    max_graph_characters: int = Field(default=1000, ge=0, le=100_000, description="of all results of the graph")
    max_characters: int = Field(default=12_000, ge=200, le=1_000_000, description="of all references together")
    source_seconds: float = Field(default=120.0, gt=0, le=600, description="the most a search or look-up may take")

    @model_validator(mode="before")
    @classmethod
    def _climb(cls, values: Any) -> Any:  # noqa: ANN401 - as pydantic has it
        """Switch off the settings of later stages; explicit settings are kept."""
        stages, parts = get_args(Rung), list(cls.annotated(Ablation))
        if not isinstance(values, dict) or values.get("rung") not in stages:
            return values
        return {**dict.fromkeys(parts[stages.index(values["rung"]) :], False), **values}
