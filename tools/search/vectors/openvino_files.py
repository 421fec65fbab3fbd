"""The files of a model for OpenVINO, and the import of OpenVINO."""

import sys
from importlib import import_module
from types import ModuleType

MODEL, TOKENIZER = "model.xml", "tokenizer.json"
LENGTH_STEP = 16
"""Kernels are made for each length that occurs: padding to a multiple keeps them few."""


class UnsupportedModel(Exception):
    """A model that cannot be built without torch; the message is the reason."""


def import_openvino() -> ModuleType:
    """Import OpenVINO without its telemetry, which would post statistics with a persistent identifier.

    OpenVINO uses a stub that sends nothing where the package `openvino_telemetry` cannot be imported.
    """
    if "openvino_telemetry" in sys.modules:  # the application uses it
        return import_module("openvino")
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # makes its import fail
    try:
        return import_module("openvino")
    finally:
        del sys.modules["openvino_telemetry"]
