"""Sessions of onnxruntime on the processor, in the precision of the graph, which is the same on every processor.

Its telemetry, which is on by default since release 1.29, is turned off while it is imported.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.environment import variables

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


def open_session(
    graph: Path, *, weights: Mapping[str, NDArray[Any]] | None = None, threads: int | None = None
) -> "InferenceSession":
    """Return a session for a graph.

    Args:
        graph: the ONNX file.
        weights: the weights that the file names but does not contain.
        threads: threads of the processor; None is one for each core that this process may use.
    """
    with variables(ORT_DISABLE_TELEMETRY="1"):
        from onnxruntime import InferenceSession, OrtValue, SessionOptions, disable_telemetry_events

    disable_telemetry_events()  # the application may have imported it before
    options = SessionOptions()
    # macOS does not limit the cores of a process.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    options.intra_op_num_threads = threads or cores
    # Idle threads would otherwise use the cores that a model server needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if weights:
        values = [OrtValue.ortvalue_from_numpy(tensor) for tensor in weights.values()]
        options.add_external_initializers(list(weights), values)
    return InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def run_session(session: "InferenceSession", inputs: Mapping[str, NDArray[np.int64]]) -> list[NDArray[np.float32]]:
    """Return the outputs for those of the inputs that the graph has; some encoders have no types.

    The memory that this takes, up to half a gigabyte, is given back: onnxruntime would keep it as long as the session.
    """
    from onnxruntime import RunOptions

    options, names = RunOptions(), {port.name for port in session.get_inputs()}
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    outputs: list[NDArray[np.float32]] = session.run(
        None, {name: rows for name, rows in inputs.items() if name in names}, options
    )
    return outputs


def as_inputs(rows: Sequence[tuple[Sequence[int], Sequence[int]]], *, pad: int = 0) -> dict[str, NDArray[np.int64]]:
    """Return the ids, mask and types of a network's inputs, from rows of ids and types padded to the longest."""
    shape = (len(rows), max(len(ids) for ids, _ in rows))
    ids, mask, types = np.full(shape, pad), np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for row, (own, own_types) in enumerate(rows):
        ids[row, : len(own)], mask[row, : len(own)], types[row, : len(own)] = own, 1, own_types
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
