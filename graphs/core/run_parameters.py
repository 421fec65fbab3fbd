"""The parameters of a run that are stored with it, and the options with which Python starts one."""

from collections.abc import Sequence
from typing import Any, TypedDict

from langchain_core.callbacks.base import Callbacks
from pydantic import BaseModel, ConfigDict

from sleuth.graphs.core.context import Budget
from sleuth.tools.settings import Profile
from sleuth.tools.sources.web_pages.page import Page

DEFAULT_METHOD = "auto"


class RunParameters(BaseModel):
    """Settings of the method by name, budget, filter of the documents, and the model instead of the default one.

    `label` is what lists of runs show instead of the question.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    values: dict[str, Any] = {}
    profile: Profile = "default"
    budget: Budget = Budget()
    where: str = ""
    model: str = ""
    label: str = ""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters without what a subclass adds to them."""
        return {name: getattr(self, name) for name in RunParameters.model_fields}


class RunOptions(TypedDict, total=False):
    """Options of a new run; all may be omitted."""

    method: str | None
    """A name from `sleuth.METHODS`; by default `auto`, without a model server `reader`."""
    values: dict[str, Any]
    """Settings of the method, such as `{"coarse_k": 5}`."""
    budget: Budget
    """What the run may spend."""
    thread: str | None
    """The thread id, generated if omitted."""
    pages: Sequence[Page]
    """Web pages to search instead of the collection; their text is stored with the run."""
    with_collection: bool
    """Search the collection as well as the pages."""
    where: str
    """A filter of the documents that are searched, such as "tag=contract date>=2025-01-01"."""
    label: str
    """What lists of runs show instead of the question."""
    callbacks: Callbacks
    """LangChain callback handlers that receive the nodes, model calls and searches of the run, in addition to those of
    the LangChain run around it."""
