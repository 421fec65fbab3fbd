"""Provenance of an evaluation: the command, the data, the settings, and the versions of all packages."""

import platform
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from sleuth.studio.evaluation.data import QuestionFile
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.optional_imports import DISTRIBUTION
from sleuth.tools.settings import Settings

PACKAGES = (
    *(DISTRIBUTION, "langgraph", "langgraph-checkpoint-sqlite", "langchain-core", "openai", "chromadb"),
    *("tantivy", "sentence-transformers", "torch", "numpy", "scipy", "rouge-score", "matplotlib"),
)


def require_packages() -> None:
    """Raise UsageError where what the report of methods is made with is not installed."""
    missing = [name for name in ("matplotlib", "rouge_score", "scipy") if find_spec(name) is None]
    if missing:
        raise UsageError(f"Evaluating methods needs {', '.join(missing)}: pip install '{DISTRIBUTION}[eval]'.")


def versions() -> dict[str, str]:
    """Return Python's and every package's that has a part in the numbers; those that are not installed are left out."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def command_line() -> str:
    """Return the command that is running, as one types it."""
    return shlex.join(["sleuth", *sys.argv[1:]])


def settings_record(settings: Settings) -> dict[str, Any]:
    """Return the settings without the secret, and without a password that a URL may hold."""
    record = settings.model_dump(mode="json", exclude={"model_key", "api_keys"})
    if record["database_url"]:
        scheme, _, rest = record["database_url"].partition("://")
        record["database_url"] = f"{scheme}://{rest.rpartition('@')[2]}"
    return record


async def data_record(library: Collection, settings: Settings, files: Sequence[QuestionFile]) -> dict[str, Any]:
    """Return the questions' files and the collection, each with a hash of its content."""
    documents, passages = await library.count()
    collection = {"name": settings.collection, "documents": documents, "passages": passages}
    questions = [
        {"set": file.set, "path": file.path, "sha256": file.sha256, "questions": len(file.questions)} for file in files
    ]
    return {"collection": {**collection, "sha256": await library.fingerprint()}, "files": questions}
