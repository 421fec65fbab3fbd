"""Approval by the person: a run waits until its plan, columns or outline is approved, edited or rejected.

Request and reply have the shape of LangChain's human-in-the-loop middleware, which agent-chat-ui and Agent Inbox draw
and fill in: https://docs.langchain.com/oss/python/langchain/human-in-the-loop. What is approved is one list of JSON
objects, under one name: `{"steps": [...]}`. Clients receive the JSON schema of the reply with the request.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NotRequired, TypeVar

from langgraph.types import interrupt
from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from sleuth.graphs.core.context import parse_json

Rows = TypeVar("Rows")

Decision = Literal["", "approve", "edit", "reject"]


class Decided(TypedDict):
    """The list is approved or rejected as it was shown."""

    type: Literal["approve", "reject"]
    message: NotRequired[str | None]


class EditedAction(TypedDict, Generic[Rows]):
    """The action with another list."""

    name: str
    args: Rows


class Edited(TypedDict, Generic[Rows]):
    """Another list is approved."""

    type: Literal["edit"]
    edited_action: EditedAction[Rows]


class Reply(TypedDict, Generic[Rows]):
    """The reply to a request: one decision. `Rows` is the type of an edited list, under its name."""

    decisions: Annotated[
        list[Annotated[Decided | Edited[Rows], Field(discriminator="type")]], Field(min_length=1, max_length=1)
    ]


@dataclass(frozen=True, kw_only=True)
class AwaitsApproval:
    """Field of the state of a run that waits for an approval; a base before the state of the run."""

    decision: Decision = ""
    """The person's decision."""


def ask_approval(
    schema: type[Reply[Any]], action: str, rows: Mapping[str, Sequence[Mapping[str, Any]]], about: str
) -> tuple[Decision, Any]:
    """Ask the person to approve an action on a named list, which they may edit, and wait for the reply.

    Args:
        schema: the type of the reply.
        action: what happens after an approval, as a name.
        rows: the list, under its name.
        about: what the person reads.

    Returns:
        The decision, and the `Rows` of the schema if they were edited.
    """
    action_request = {"name": action, "args": dict(rows), "description": about}
    allowed = {"action_name": action, "allowed_decisions": ["approve", "edit", "reject"]}
    request = {"action_requests": [action_request], "review_configs": [allowed]}
    (decision,) = interrupt(request, response_schema=schema)["decisions"]
    return decision["type"], decision["edited_action"]["args"] if decision["type"] == "edit" else None


def read_rows(defaults: Callable[[int], dict[str, Any]] = lambda number: {}) -> BeforeValidator:
    """Return a validator of a list that may be JSON text and contain plain questions; rows have the defaults."""

    def read(rows: object) -> object:
        value = parse_json(rows)
        if not isinstance(value, list):
            return value
        listed = [{"question": row} if isinstance(row, str) else row for row in value]
        return [{**defaults(at), **row} if isinstance(row, dict) else row for at, row in enumerate(listed, start=1)]

    return BeforeValidator(read)


def parse_typed_decision(text: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a typed reply to a request (approve, reject, or another list) as `{"decisions": [...]}`."""
    word = text.strip().casefold()
    if word in ("approve", "reject"):
        return {"decisions": [{"type": word}]}
    (request,) = asked["action_requests"]
    edited = {"name": request["name"], "args": dict.fromkeys(request["args"], text)}
    return {"decisions": [{"type": "edit", "edited_action": edited}]}


def describe_request(asked: Mapping[str, Any]) -> str:
    """Return the request to the person as a text."""
    (request,) = asked["action_requests"]
    ((name, rows),) = request["args"].items()
    listed = json.dumps(rows, ensure_ascii=False, indent=1)
    return f"{request['description']}\n\n{listed}\n\nReply approve, reject, or with other {name} as such a list."
