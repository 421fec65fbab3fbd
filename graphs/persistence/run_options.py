"""The options of a run, which its row stores as JSON."""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from sleuth.graphs.core.context import Budget
from sleuth.tools.settings import Profile


class _Stored(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)


class Turn(_Stored):
    """The input of a chat's turn: a message, or a reply to an interrupt as JSON; `at`: the latest checkpoint before it.

    `start`: the checkpoint at which the turn begins. None if the message continues the conversation.
    """

    text: str = ""
    at: str = ""
    start: str | None = Field(default=None, alias="from")
    id: str = ""
    reply: str | None = None


class StoredPages(_Stored):
    """Pages passed with a question, by content hash; `beside`: the collection is searched too."""

    texts: list[str] = []
    beside: bool = False
    warnings: list[str] = []


class StoredOptions(_Stored):
    """Settings, budget and sources that a run was started with, and values that clients of the server store with it.

    `values`: settings of the method. `hop`: number as a sub-run, 0 for any other run. `where`: filter of the documents.
    """

    values: dict[str, Any] = {}
    profile: Profile = "default"
    budget: Budget = Budget()
    hop: int = 0
    pages: StoredPages = StoredPages()
    where: str = ""
    turn: Turn | None = None
    feedback: dict[str, Any] = {}
    langgraph_metadata: dict[str, Any] = {}

    def to_json(self) -> dict[str, Any]:
        """Return the options that were set, in the form in which they are stored."""
        return self.model_dump(by_alias=True, exclude_unset=True)

    def dumps(self) -> str:
        """Return the stored text; sub-runs are found by the spacing of `json.dumps`."""
        return json.dumps(self.to_json())
