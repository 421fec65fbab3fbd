"""Approval by the person: a run waits until its plan, columns or outline is approved, edited or rejected.

Request and reply have the shape of LangChain's human-in-the-loop middleware, which agent-chat-ui and Agent Inbox draw
and fill in: https://docs.langchain.com/oss/python/langchain/human-in-the-loop. What is approved is one list of JSON
objects, under one name: `{"steps": [...]}`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import ValidationError

from sleuth.graphs.core.context import parse_json

T = TypeVar("T")

Decision = Literal["", "approve", "edit", "reject"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval(Generic[T]):
    """The decision of a person.

    `edited` is what they want instead; `remark` is their remark, or why their reply cannot be used.
    """

    decision: Decision
    edited: T | None = None
    remark: str = ""


def approval_request(
    action: str, name: str, rows: Sequence[Mapping[str, Any]], about: str, remark: str
) -> dict[str, Any]:
    """Return the request to the person: to carry out an action on a named list, which they may edit.

    Args:
        action: what happens after an approval, as a name.
        name: the name of the list.
        rows: the list.
        about: what the person reads.
        remark: why their last reply could not be used; empty at first.
    """
    about = f"{remark}\n\n{about}" if remark else about
    shown = {"name": action, "args": {name: [dict(row) for row in rows]}, "description": about}
    allowed = {"action_name": action, "allowed_decisions": ["approve", "edit", "reject"]}
    return {"action_requests": [shown], "review_configs": [allowed]}


def parse_decision(reply: Any, read: Callable[[list[Any]], T]) -> Approval[T]:  # noqa: ANN401 - any JSON of a client
    """Parse a reply `{"decisions": [{"type": "approve" | "edit" | "reject", ...}]}`; an invalid one has no decision.

    Args:
        reply: the reply.
        read: parses an edited list, which may have been sent as JSON text; raises TypeError or ValueError.
    """
    try:
        (decision,) = reply["decisions"]
        match decision["type"]:
            case "approve":
                return Approval(decision="approve")
            case "reject":
                return Approval(decision="reject", remark=str(decision.get("message") or ""))
            case "edit":
                (rows,) = decision["edited_action"]["args"].values()
                return Approval(decision="edit", edited=read(_listed(rows)))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else f"{type(error).__name__}: {error}"
        return Approval(decision="", remark=f"The last reply could not be used ({why}).")
    return Approval(decision="", remark="The last reply could not be used: it must approve, edit or reject.")


def _listed(rows: Any) -> list[Any]:  # noqa: ANN401 - as above
    found = parse_json(rows)
    if not isinstance(found, list):
        raise TypeError("it must be a list")
    return found


def parse_typed_decision(text: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a typed reply to a request (approve, reject, or another list) in the form of `parse_decision`."""
    word = text.strip().casefold()
    if word in ("approve", "reject"):
        return {"decisions": [{"type": word}]}
    (shown,) = asked["action_requests"]
    edited = {"name": shown["name"], "args": dict.fromkeys(shown["args"], text)}
    return {"decisions": [{"type": "edit", "edited_action": edited}]}


def describe_request(asked: Mapping[str, Any]) -> str:
    """Return the request to the person as a text."""
    (shown,) = asked["action_requests"]
    ((name, rows),) = shown["args"].items()
    listed = json.dumps(rows, ensure_ascii=False, indent=1)
    return f"{shown['description']}\n\n{listed}\n\nReply approve, reject, or with other {name} as such a list."
