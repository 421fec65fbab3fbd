"""Safe reading of checkpoints: which types a stored value may create.

LangGraph's own serializer imports and calls the name that a stored value carries, so that opening a file of runs could
run any program. This one creates objects of the types listed here and refuses all others.
"""

from pkgutil import resolve_name
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_DELTA_SNAPSHOT,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)

from sleuth.tools.errors import StoreDamaged
from sleuth.tools.langgraph_internals import DeltaSnapshot

_MESSAGES = ("ai.AIMessage", "human.HumanMessage", "modifier.RemoveMessage", "system.SystemMessage", "tool.ToolMessage")
TYPES = frozenset(
    {
        "langgraph.types.Interrupt",
        "langgraph.types.Send",
        *(f"langchain_core.messages.{name}" for name in _MESSAGES),
    }
)
"""Every type whose objects a checkpoint may contain, next to JSON and LangGraph's snapshots of channels."""

_OPTION = ormsgpack.OPT_NON_STR_KEYS
_REMEDY = "Put a backup of the runs in place, or remove this run."


class CheckpointSerializer(JsonPlusSerializer):
    """Serializer that writes as LangGraph's does and reads only the types of `TYPES`."""

    def __init__(self) -> None:
        super().__init__(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=None)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:  # noqa: ANN401 - as the base has it
        """Return the value of a stored type and body.

        Raises:
            StoreDamaged: the body cannot be decoded, or contains an object of a type that is not in `TYPES`.
        """
        kind, body = data
        if kind == "null":
            return None
        if kind != "msgpack":
            raise StoreDamaged(f"A value is stored as {kind!r}, not as msgpack, and was not read. {_REMEDY}")
        refused: list[StoreDamaged] = []  # ormsgpack replaces what its hook raises by a ValueError

        def revive(code: int, data: bytes) -> Any:  # noqa: ANN401 - any value
            given = ormsgpack.unpackb(data, ext_hook=revive, option=_OPTION)
            try:
                return _revived(code, given)
            except StoreDamaged as error:
                refused.append(error)
                raise

        try:
            return ormsgpack.unpackb(body, ext_hook=revive, option=_OPTION)
        except ValueError as error:
            raise refused[0] if refused else StoreDamaged(f"A value cannot be decoded ({error}). {_REMEDY}") from error


def _revived(code: int, given: Any) -> Any:  # noqa: ANN401 - any value
    if code == EXT_DELTA_SNAPSHOT:
        return DeltaSnapshot(given)
    if not isinstance(given, list | tuple) or len(given) < 3:
        raise StoreDamaged(f"A value has the unknown format {code} and was not read. {_REMEDY}")
    path = f"{given[0]}.{given[1]}"
    if path not in TYPES or code not in (EXT_CONSTRUCTOR_POS_ARGS, EXT_CONSTRUCTOR_KW_ARGS, EXT_PYDANTIC_V2):
        raise StoreDamaged(
            f"A value has the type {path}, which checkpoints of this release do not contain. It was not loaded, "
            "and no code of it ran. Upgrade sleuth if a newer release wrote it; do not trust the file otherwise."
        )
    kind = resolve_name(path)
    return kind(*given[2]) if code == EXT_CONSTRUCTOR_POS_ARGS else kind(**given[2])
