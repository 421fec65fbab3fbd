"""Settings of the graphs that let other methods answer: the chat, the report and `auto`."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from sleuth.graphs.core.context import MethodSettings, parse_json
from sleuth.graphs.registry import METHODS


def check_method(name: str) -> str:
    """Return the name of a method.

    Raises:
        ValueError: there is no such method.
    """
    if name not in METHODS:
        raise ValueError(f"{name!r} is none of {', '.join(METHODS)}")
    return name


def _list_methods(schema: dict[str, Any]) -> None:
    schema["enum"] = list(METHODS)


MethodName = Annotated[str, AfterValidator(check_method), Field(json_schema_extra=_list_methods)]
"""The name of a method, of those that answer questions."""


class DelegatingSettings(MethodSettings):
    """Settings of a graph that lets another method answer questions."""

    method: MethodName = Field(default="auto", description="what answers the questions")
    method_settings: Annotated[dict[str, Any], BeforeValidator(parse_json)] = Field(
        default={}, description='settings of that method, as JSON: {"coarse_k": 5}'
    )

    def nested(self) -> dict[str, dict[str, Any]]:
        """Return `method_settings`."""
        return {self.method: self.method_settings}
