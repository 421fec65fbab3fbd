"""Settings of CRP-RAG."""

from typing import Annotated

from pydantic import Field

from sleuth.graphs.core.context import Ablation, CheckedSettings, InPaper
from sleuth.graphs.methods.crp_rag.reasoning_graph import Structure
from sleuth.tools.search import Mode


class Settings(CheckedSettings):
    """Settings of `--set`; those marked "ours" go beyond the paper and are off under `profile=paper`.

    The bounds are ours too, and stay on: the paper has none. Reaching one is a warning.
    """

    structure: Annotated[Structure, Ablation()] = Field(
        default="graph", description="or tree (no merging), chain, text (the question rewritten)"
    )
    samples: int = Field(default=2, ge=1, le=20, description="next steps drawn for each open step")
    merge_threshold: float = Field(default=0.85, ge=0, le=1, description="steps more alike than this become one")
    top_k: int = Field(default=5, ge=1, le=100, description="passages for a step")
    mode: Annotated[Mode, InPaper("dense")] = Field(default="graph", description="how to search (paper: dense)")
    perplexity_threshold: float | None = Field(
        default=None,
        ge=1,
        description="knowledge is sufficient below it; default: as fitted, else 2.0",
    )
    agreement_samples: int = Field(default=3, ge=1, le=20, description="answers compared without log-probabilities")
    aggregate: Annotated[bool, Ablation()] = Field(default=True, description="off: passages are read as they are")
    verify: Annotated[bool, Ablation()] = Field(
        default=True, description="off: the shortest and the longest path answer"
    )
    iterate: Annotated[bool, Ablation()] = Field(default=True, description="off: a path is answered in one call")
    shortcut: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: no graph where the question itself has its knowledge"
    )
    contradictions: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: warn where paths differ at a step that they share"
    )
    detailed: Annotated[bool, InPaper(True)] = Field(
        default=False, description="steps may explain or compare, summaries list examples and details (paper: true)"
    )
    last_step: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: the last step of a path is asked for the answer to the question"
    )
    max_depth: int = Field(default=5, ge=1, le=20, description="steps on a path")
    max_width: int = Field(default=4, ge=1, le=50, description="new steps in a layer")
    max_nodes: int = Field(default=16, ge=1, le=200, description="steps in the graph")
    max_paths: int = Field(default=4, ge=1, le=100, description="paths that are answered from")
