"""Safe reading of checkpoints: a stored value creates only objects of types that LangGraph lists as safe."""

from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from sleuth.tools.errors import StoreDamaged

_REMEDY = "Put a backup of the runs in place, or remove this run."


class CheckpointSerializer(JsonPlusSerializer):
    """LangGraph's serializer in its strict mode, which imports and calls nothing else that a stored value names."""

    def __init__(self) -> None:
        super().__init__(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=None)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:  # noqa: ANN401 - as the base has it
        """Return the value of a stored type and body.

        Raises:
            StoreDamaged: it is not stored as msgpack, or the body cannot be decoded.
        """
        if data[0] not in ("null", "msgpack"):
            raise StoreDamaged(f"A value is stored as {data[0]!r}, not as msgpack, and was not read. {_REMEDY}")
        try:
            return super().loads_typed(data)
        except ValueError as error:
            raise StoreDamaged(f"A value cannot be decoded ({error}). {_REMEDY}") from error
