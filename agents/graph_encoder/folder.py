"""A graph model on the disk: the encoder, in the folder of its language model's adapter, and what it was made for."""

import json
from dataclasses import asdict
from pathlib import Path

from sleuth.agents.graph_encoder.encoder import Encoder, Shape
from sleuth.tools.errors import UsageError

ABOUT, WEIGHTS = "graph.json", "graph.safetensors"
TRAINING = "python -m sleuth.studio.training.graph_llm"


def is_graph_model(folder: Path) -> bool:
    """Whether a graph model was written there."""
    return (folder / ABOUT).is_file() and (folder / WEIGHTS).is_file()


def no_graph_model(folder: str) -> str:
    """What to say of a folder that holds none."""
    return f"{folder} holds no graph model ({ABOUT} and {WEIGHTS}); `{TRAINING}` makes one"


def save(encoder: Encoder, folder: Path, *, embedder: str) -> None:
    """Writes an encoder that was trained on vectors of this embedder."""
    from safetensors.torch import save_file

    weights = {name: each.detach().cpu().contiguous() for name, each in encoder.module.state_dict().items()}
    save_file(weights, folder / WEIGHTS)
    about = {"embedder": embedder, "shape": asdict(encoder.shape)}
    (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def load(folder: Path) -> tuple[Encoder, str]:
    """The encoder, and the name of its embedder.

    Raises:
        UsageError: there is none, or what is there is not of one piece.
        MissingExtra: the library for graphs is not installed.
    """
    if not is_graph_model(folder):
        raise UsageError(f"{no_graph_model(str(folder))}.")
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        encoder, embedder = Encoder(Shape(**about["shape"])), str(about["embedder"])
        encoder.module.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"The graph model in {folder} cannot be read ({reason}): make it again.") from None
    encoder.module.eval()
    return encoder, embedder
