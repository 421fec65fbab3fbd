"""Settings of the graphs that let other methods answer: the chat, the report, and methods that delegate."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from sleuth.graphs.core.context import DEFAULT_METHOD, MethodSettings, parse_json
from sleuth.graphs.registry import METHODS


def check_method(name: str) -> str:
    """Return the name of a method.

    Raises:
        ValueError: there is no such method.
    """
    if name not in METHODS:
        raise ValueError(f"{name!r} is none of {', '.join(METHODS)}")
    return name


def check_asked(name: str) -> str:
    """Return the name of a method that another method may ask.

    Raises:
        ValueError: there is no such method, or it asks other methods itself: the two could ask each other without end.
    """
    if METHODS[check_method(name)].delegates:
        raise ValueError(f"{name!r} asks other methods itself")
    return name


def _list_methods(schema: dict[str, Any]) -> None:
    schema["enum"] = list(METHODS)


MethodName = Annotated[str, AfterValidator(check_method), Field(json_schema_extra=_list_methods)]
"""The name of a method, of those that answer questions."""
AskedMethod = Annotated[str, AfterValidator(check_asked)]
"""The name of a method that another method may ask."""


class DelegatingSettings(MethodSettings):
    """Settings of a graph that lets another method answer questions."""

    method: MethodName = Field(default=DEFAULT_METHOD, description="what answers the questions")
    method_settings: Annotated[dict[str, Any], BeforeValidator(parse_json)] = Field(
        default={}, description='settings of that method, as JSON: {"coarse_k": 5}'
    )

    def nested(self) -> dict[str, dict[str, Any]]:
        """Return `method_settings`."""
        return {self.method: self.method_settings}
