"""Stored values that would run a program if a serializer created the object that they name."""

import json
import pickle
from pathlib import Path
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde import jsonplus as codes

Stored = tuple[str, bytes]


class _Runs:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        import os

        return os.system, (self.command,)


def values(marker: Path) -> dict[str, Stored]:
    """By a short name, values that each make the marker file where they are obeyed."""
    command, source = f"touch {marker}", f"open({str(marker)!r}, 'w').close()"

    def ext(code: int, *parts: object) -> Stored:
        return "msgpack", ormsgpack.packb({"x": [ormsgpack.Ext(code, ormsgpack.packb(parts))]})

    def lc(version: int, *id: str, **given: object) -> Stored:
        return "json", json.dumps({"lc": version, "type": "constructor", "id": id, **given}).encode()

    hidden = ormsgpack.packb(("os", "system", command))
    nested = ormsgpack.packb(["langchain_core.messages.human", "HumanMessage", {"content": ormsgpack.Ext(0, hidden)}])
    return {
        "os.system": ext(codes.EXT_CONSTRUCTOR_SINGLE_ARG, "os", "system", command),
        "builtins.eval": ext(codes.EXT_CONSTRUCTOR_POS_ARGS, "builtins", "eval", [source]),
        "subprocess.run": ext(codes.EXT_CONSTRUCTOR_KW_ARGS, "subprocess", "run", {"args": ["touch", str(marker)]}),
        "posix.system": ext(codes.EXT_METHOD_SINGLE_ARG, "os", "posix", command, "system"),
        "pydantic.v1": ext(codes.EXT_PYDANTIC_V1, "subprocess", "run", {"args": ["touch", str(marker)]}),
        "pydantic.v2": ext(codes.EXT_PYDANTIC_V2, "subprocess", "run", {"args": ["touch", str(marker)]}, "construct"),
        "nested": ("msgpack", ormsgpack.packb(ormsgpack.Ext(codes.EXT_PYDANTIC_V2, nested))),
        "snapshot": (
            "msgpack",
            ormsgpack.packb(ormsgpack.Ext(codes.EXT_DELTA_SNAPSHOT, ext(0, "os", "system", command)[1])),
        ),
        "lc2": lc(2, "subprocess", "run", kwargs={"args": ["touch", str(marker)]}),
        "lc1": lc(1, "subprocess", "run", kwargs={"args": ["touch", str(marker)]}),
        "pickle": ("pickle", pickle.dumps(_Runs(command))),
    }


NAMES = list(values(Path("/")))
