"""Settings from the environment and `sleuth.toml`; no other module reads these."""

import ipaddress
import json
import logging
import os
import re
import ssl
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from sleuth.tools.errors import UsageError

_log = logging.getLogger(__name__)

_PREFIX, _FILE = "SLEUTH_", "sleuth.toml"
_OTHERS = re.compile("SLEUTH_(TEST_.+|REQUIRE_ALL|PICTURES|AGENT_CHAT_UI|SERVER|METHOD)", re.IGNORECASE)
"""Variables that the tests, the Makefile and the examples read."""

Profile = Literal["default", "paper"]
Ranker = Literal["trained", "formula"]
Tracing = Literal["off", "langsmith", "otel"]


def _suffix(text: str) -> str:
    if not re.fullmatch(r"\.[^./\\\s]+", text):
        raise ValueError(f"{text!r} is not a file suffix: it must start with its only dot, as in .ipynb")
    if text.lower() == ".jsonl":
        raise ValueError("a .jsonl file is read as a corpus, not by a loader class")
    return text.lower()


def _open(url: str) -> str:
    if "://" in url:
        parts = urlsplit(url)
        if "@" in parts.netloc:
            raise ValueError("contains a name or a password, and addresses are logged: remove them")
        parts.port  # noqa: B018 - raises ValueError with the reason
    return os.path.expanduser(url)  # noqa: PTH111 - it may be a path


Folder = Annotated[Path, AfterValidator(lambda path: Path(os.path.expanduser(path)))]  # noqa: PTH111 - never raises
"""A path, perhaps with `~` for the user's folder, as in `sleuth.toml`, which no shell expands."""

Address = Annotated[str, AfterValidator(_open)]
"""An address; it appears in messages, records and reports, so it must not contain a secret."""


Secret = Annotated[SecretStr, AfterValidator(lambda key: SecretStr(key.get_secret_value().strip()))]
"""A key, without the line end with which files of secrets end."""

TRACING_VARIABLES = ("LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING", "LANGCHAIN_TRACING")
"""Variables that LangSmith's libraries read."""


def tracing_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the variables by which LangSmith's libraries start tracing; sleuth ignores them."""
    off = ("", "0", "false", "no", "off")
    return [name for name in TRACING_VARIABLES if environment.get(name, "").strip().lower() not in off]


def is_loopback(host: str) -> bool:
    """Return whether a host name or address, perhaps IPv4 mapped to IPv6, is a loopback address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def client_options(url: str = "", proxy: str | None = None) -> dict[str, Any]:
    """Return the options of every httpx2 client: the proxies of the environment do not apply.

    Args:
        url: the address to which the client connects.
        proxy: SLEUTH_PROXY, which is not used for a server on this machine.
    """
    is_remote = proxy is not None and not is_loopback(urlsplit(url).hostname or "localhost")
    options: dict[str, Any] = {"trust_env": False, "proxy": proxy if is_remote else None}
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or folder:  # certificates of the environment still apply
        options["verify"] = ssl.create_default_context(cafile=file or None, capath=folder or None)
    return options


MODEL_URL = "http://127.0.0.1:8000/v1"
MODEL_SERVER_STATE = Path("model-server", "state.json")
"""State of `sleuth model serve` below its home: the process, its start and its port."""


def is_model_server_running(home: Path) -> bool:
    """Return whether the process of a home's `sleuth model serve` runs: it has locked a file until it ends."""
    import fcntl

    try:
        with (home / MODEL_SERVER_STATE).with_name("running").open("rb") as file:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _model_url(values: dict[str, Any]) -> str:
    """Return the address of the running `sleuth model serve` of the home; the usual address without one."""
    try:
        port = int(json.loads((values["home"] / MODEL_SERVER_STATE).read_bytes())["options"]["port"])
        is_running = is_model_server_running(values["home"])
    except (OSError, LookupError, TypeError, ValueError):  # none was started here
        return MODEL_URL
    return f"http://127.0.0.1:{port}/v1" if is_running else MODEL_URL


class Settings(BaseSettings):
    """Settings of all runs on this machine; each field is `SLEUTH_<NAME>`, or a line in `sleuth.toml`."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        env_ignore_empty=True,
        toml_file=_FILE,
        extra="ignore",
        str_strip_whitespace=True,
        frozen=True,
        protected_namespaces=(),
    )

    home: Folder = Field(
        default_factory=lambda: user_data_path("sleuth"), description="catalogue, indexes, checkpoints"
    )
    runs: Folder | None = Field(
        default=None, description="folder of the runs, such as an evaluation's; default: the home"
    )
    collection: str = Field(
        default="default", max_length=100, pattern=r"^[\w.-]+$", description="name of the set of documents"
    )
    owner: str = Field(
        default="local", max_length=100, pattern=r"^[\w.@-]+$", description="owner of the documents and threads"
    )
    model_url: Address = Field(
        default_factory=_model_url,
        description=f"OpenAI-compatible server; default: a running `sleuth model serve` of the home, else {MODEL_URL}",
    )
    model: str | None = Field(default=None, description="model or adapter name; default: the only one the server lists")
    models: dict[str, str] = Field(default_factory=dict, description="model name per role, as JSON")
    model_key: Secret | None = Field(default=None, description="bearer token for the model server; never logged")
    proxy: Annotated[Address, Field(pattern="^https?://")] | None = Field(
        default=None,
        description="HTTP proxy for the model server, the embeddings endpoint, the reranker, the knowledge graph's "
        "server and tracing, unless they are on this machine; HTTP_PROXY and the like are ignored",
    )
    embedder: Address = Field(
        default="all-MiniLM-L6-v2", min_length=1, description="sentence-transformers name, folder, URL, or none"
    )
    loaders: dict[Annotated[str, AfterValidator(_suffix)], str] = Field(
        default_factory=dict, description="loader class of langchain-community per further file suffix, as JSON"
    )
    file_seconds: int = Field(
        default=120, ge=1, le=86_400, description="limit of processor seconds for reading one file"
    )
    file_megabytes: int = Field(default=2_048, ge=512, description="limit of memory for reading one file")
    file_characters: int = Field(default=10_000_000, ge=1, description="limit of characters of one file")
    ingest_workers: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="files that an ingest reads simultaneously; default: half the processors, at most 8",
    )
    ray: Address | None = Field(
        default=None,
        min_length=1,
        description="private Ray cluster that reads, analyzes and embeds the documents of an ingest: HOST:PORT "
        "or ray://HOST:PORT",
    )
    ocr_languages: str = Field(
        default="eng",
        pattern=r"^\w+(\+\w+)*$",
        description="Tesseract's names of the languages of scanned pages, such as eng+deu",
    )
    keep_originals: bool | None = Field(
        default=None,
        description="keep copies of ingested files, so that citations open in them; default: only of files that are "
        "uploaded to `sleuth serve`",
    )
    knowledge_graph: Address | None = Field(
        default=None,
        min_length=1,
        description="URL of a knowledge graph, as CRAG's mock server has it; default: the triples extracted so far",
    )
    checker: Folder | None = Field(
        default=None, description="folder of an evidence checker; default: the one of the package"
    )
    database_url: str | None = Field(default=None, description="postgresql://… for checkpoints and catalogue")
    vectors: Literal["chroma", "pgvector"] = Field(
        default="chroma", description="store of vectors: `chroma`, or `pgvector` in the Postgres of SLEUTH_DATABASE_URL"
    )
    chroma_url: Address | None = Field(default=None, description="a Chroma server instead of the embedded one")
    ranker: Ranker = Field(
        default="trained", description="ranking of graph search: the `trained` model or the plain `formula`"
    )
    reranker: Address | None = Field(
        default=None,
        min_length=1,
        description="/rerank endpoint (vLLM, Text Embeddings Inference, Jina, Cohere) that sorts what a search finds",
    )
    reranker_model: str | None = Field(default=None, description="model name for the reranker, if it needs one")
    reranker_key: Secret | None = Field(default=None, description="bearer token for the reranker; never logged")
    api_keys: Secret | None = Field(
        default=None,
        description="name:secret,… that `sleuth serve` accepts, or one a line; the name is the owner. Never logged",
    )
    api_keys_file: Folder | None = Field(
        default=None,
        description="file with more keys, one name:secret a line; it is read again when it changes",
    )
    embed_keys: SecretStr | None = Field(
        default=None,
        description="name:secret@origin,… for `embed.js`: the key can only chat, from pages of its origin",
    )
    operator: str | None = Field(
        default=None,
        description="owner whose key may read the metrics and list the runs of all owners of `sleuth serve`",
    )
    requests_a_minute: int | None = Field(
        default=None, ge=1, description="limit of requests per owner of `sleuth serve`"
    )
    tokens_a_day: int | None = Field(
        default=None, ge=1, description="limit of model tokens per owner of `sleuth serve`"
    )
    wait: float = Field(
        default=60.0, ge=0, le=86_400, description="seconds that commands wait for another process that uses the home"
    )
    tracing: Tracing = Field(
        default="off",
        description="`langsmith` sends runs without texts to LangSmith, `otel` spans without texts to the collector of "
        "the `OTEL_` variables",
    )
    require_citations: bool | None = Field(
        default=None,
        description="an answer without a verified citation is asked once more for one, and is then weakly supported "
        "or refused; default: only in `sleuth serve` and MCP",
    )
    trace_texts: bool = Field(default=False, description="traces also contain questions, passages, prompts and replies")
    profile: Profile = Field(
        default="default", description="`paper` switches off everything that goes beyond the papers"
    )
    concurrency: int = Field(default=8, ge=1, le=1024, description="model calls in flight, fewer after time-outs")
    timeout: float = Field(default=120.0, gt=0, le=3600, description="seconds for one model call")

    @property
    def has_keys(self) -> bool:
        """True if `sleuth serve` needs API keys."""
        return self.api_keys is not None or self.api_keys_file is not None

    def without_secrets(self) -> dict[str, Any]:
        """Return the settings as JSON values; keys are masked, and of the database only its address is named."""
        values = self.model_dump(mode="json")
        if self.database_url is not None:
            from sleuth.tools.storage.database import database_address

            values["database_url"] = database_address(self.database_url)
        return values

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources: arguments override the environment, which overrides `sleuth.toml` in the working folder.

        Raises:
            UsageError: the file cannot be read, or has a key that is not a setting.
        """
        _warn_of_variables(frozenset(name for name, value in os.environ.items() if value), *settings_cls.model_fields)
        return init_settings, env_settings, _read_file(settings_cls)


@cache  # each variable is reported once in a process
def _warn_of_variables(variables: frozenset[str], *fields: str) -> None:
    for name in sorted(variables):
        key = name.lower().removeprefix(_PREFIX.lower())
        if name.upper().startswith(_PREFIX) and key not in fields and not _OTHERS.fullmatch(name):
            _log.warning("%r is not a setting and is ignored.%s", name, _guess(name, fields, prefix=_PREFIX))


def _read_file(settings_cls: type[BaseSettings]) -> TomlConfigSettingsSource:
    try:
        source = TomlConfigSettingsSource(settings_cls)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{_FILE} in the working folder cannot be read: {error}. Correct it, or remove it.") from error
    for key in source.toml_data:
        if key not in settings_cls.model_fields:
            guess = _guess(key, settings_cls.model_fields)
            raise UsageError(f"{_FILE} in the working folder has {key!r}, which is not a setting.{guess}")
    return source


def _guess(name: str, fields: Iterable[str], *, prefix: str = "") -> str:
    near = get_close_matches(name.lower().removeprefix(_PREFIX.lower()), fields, n=1)
    return f" Did you mean {prefix}{near[0].upper() if prefix else near[0]}?" if near else ""
